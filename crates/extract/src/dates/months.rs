//! The names of months, full and short, in the languages of most news.

/// The number of a month by its name, in any case.
pub(super) fn month_of(word: &str) -> Option<i64> {
    if word.chars().count() < 3 {
        return None;
    }
    let lower = word.to_lowercase();
    // Hebrew writes "in March" as one word.
    let lower = lower.strip_prefix('ב').unwrap_or(&lower);
    let found = MONTHS.iter().find(|(names, _)| names.contains(&lower));
    found.map(|(_, month)| *month)
}

#[rustfmt::skip]
const MONTHS: [(&[&str], i64); 12] = [
    (&["jan", "january", "januar", "jänner", "januari", "janvier", "janv", "enero", "ene", "gennaio", "genn", "gen", "janeiro", "styczeń", "stycznia", "января", "январь", "янв", "січня", "ocak", "leden", "ledna", "ιανουαρίου", "januára", "január", "ianuarie", "tammikuuta", "tammikuu", "siječnja", "januarja", "sausio", "janvāris", "jaanuar", "январы", "يناير", "ינואר", "janúar", "มกราคม", "जनवरी", "januarie", "gener"], 1),
    (&["feb", "february", "februar", "februari", "février", "fevrier", "févr", "febrero", "febbraio", "fevereiro", "fev", "luty", "lutego", "февраля", "февраль", "фев", "лютого", "şubat", "únor", "února", "φεβρουαρίου", "februára", "február", "februarie", "helmikuuta", "helmikuu", "veljače", "februarja", "vasario", "februāris", "veebruar", "فبراير", "פברואר", "กุมภาพันธ์", "फ़रवरी", "pebruari", "febrer"], 2),
    (&["mar", "march", "märz", "mrz", "maart", "mars", "marzo", "março", "marca", "marzec", "марта", "март", "мар", "березня", "mart", "březen", "března", "marts", "μαρτίου", "március", "martie", "maaliskuuta", "maaliskuu", "ožujka", "marec", "kovo", "märts", "مارس", "מרץ", "มีนาคม", "मार्च", "maret", "març"], 3),
    (&["apr", "april", "avril", "avr", "abril", "abr", "aprile", "kwiecień", "kwietnia", "апреля", "апрель", "апр", "квітня", "nisan", "duben", "dubna", "απριλίου", "apríla", "április", "aprilie", "huhtikuuta", "huhtikuu", "travnja", "balandžio", "aprīlis", "aprill", "أبريل", "ابريل", "אפריל", "เมษายน", "अप्रैल", "април"], 4),
    (&["may", "mai", "mei", "mayo", "maggio", "mag", "maio", "maj", "maja", "мая", "май", "травня", "mayıs", "květen", "května", "μαΐου", "mája", "május", "toukokuuta", "toukokuu", "svibnja", "gegužės", "maijs", "مايو", "מאי", "พฤษภาคม", "मई", "maig"], 5),
    (&["jun", "june", "juni", "juin", "junio", "giugno", "giu", "junho", "czerwiec", "czerwca", "июня", "июнь", "июн", "червня", "haziran", "červen", "června", "ιουνίου", "júna", "június", "iunie", "kesäkuuta", "kesäkuu", "lipnja", "junija", "birželio", "jūnijs", "juuni", "يونيو", "יוני", "มิถุนายน", "जून", "juny", "юни"], 6),
    (&["jul", "july", "juli", "juillet", "juil", "julio", "luglio", "lug", "julho", "lipiec", "lipca", "июля", "июль", "июл", "липня", "temmuz", "červenec", "července", "ιουλίου", "júla", "július", "iulie", "heinäkuuta", "heinäkuu", "srpnja", "julija", "liepos", "jūlijs", "juuli", "يوليو", "יולי", "กรกฎาคม", "जुलाई", "juliol", "юли"], 7),
    (&["aug", "august", "augustus", "augusti", "août", "aout", "agosto", "ago", "sierpień", "sierpnia", "августа", "август", "авг", "серпня", "ağustos", "srpen", "srpna", "αυγούστου", "augusta", "augusztus", "elokuuta", "elokuu", "kolovoza", "avgusta", "rugpjūčio", "augusts", "أغسطس", "אוגוסט", "สิงหาคม", "अगस्त", "agustus", "agost"], 8),
    (&["sep", "sept", "september", "septembre", "septiembre", "setiembre", "settembre", "set", "setembro", "wrzesień", "września", "сентября", "сентябрь", "сен", "вересня", "eylül", "září", "σεπτεμβρίου", "septembra", "szeptember", "septembrie", "syyskuuta", "syyskuu", "rujna", "rugsėjo", "septembris", "سبتمبر", "ספטמבר", "กันยายน", "सितंबर", "setembre", "септември"], 9),
    (&["oct", "october", "oktober", "okt", "octobre", "octubre", "ottobre", "ott", "outubro", "out", "październik", "października", "октября", "октябрь", "окт", "жовтня", "ekim", "říjen", "října", "οκτωβρίου", "októbra", "október", "octombrie", "lokakuuta", "lokakuu", "oktobra", "spalio", "oktobris", "oktoober", "أكتوبر", "אוקטובר", "ตุลาคม", "अक्टूबर", "октомври"], 10),
    (&["nov", "november", "novembre", "noviembre", "novembro", "listopad", "listopada", "ноября", "ноябрь", "ноя", "листопада", "kasım", "listopadu", "νοεμβρίου", "novembra", "noiembrie", "marraskuuta", "marraskuu", "studenoga", "lapkričio", "novembris", "نوفمبر", "נובמבר", "พฤศจิกายน", "नवंबर", "ноември"], 11),
    (&["dec", "december", "dezember", "dez", "décembre", "decembre", "déc", "diciembre", "dic", "dicembre", "dezembro", "grudzień", "grudnia", "декабря", "декабрь", "дек", "грудня", "aralık", "prosinec", "prosince", "δεκεμβρίου", "decembra", "decembrie", "joulukuuta", "joulukuu", "prosinca", "gruodžio", "decembris", "detsember", "ديسمبر", "דצמבר", "ธันวาคม", "दिसंबर", "desember", "desembre", "декември"], 12),
];
