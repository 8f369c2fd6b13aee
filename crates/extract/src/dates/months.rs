//! The names of months, full and short, in the languages of most news.

/// The number of a month by its name, in any case.
pub(super) fn month_of(word: &str) -> Option<i64> {
    if word.chars().count() < 3 {
        return None;
    }
    let lower = word.to_lowercase();
    let found = MONTHS
        .iter()
        .find(|(names, _)| names.contains(&lower.as_str()));
    found.map(|(_, month)| *month)
}

#[rustfmt::skip]
const MONTHS: [(&[&str], i64); 12] = [
    (&["jan", "january", "januar", "jänner", "januari", "janvier", "janv", "enero", "ene", "gennaio", "genn", "gen", "janeiro", "styczeń", "stycznia", "января", "январь", "янв", "січня", "ocak", "leden", "ledna", "ιανουαρίου"], 1),
    (&["feb", "february", "februar", "februari", "février", "fevrier", "févr", "febrero", "febbraio", "fevereiro", "fev", "luty", "lutego", "февраля", "февраль", "фев", "лютого", "şubat", "únor", "února", "φεβρουαρίου"], 2),
    (&["mar", "march", "märz", "mrz", "maart", "mars", "marzo", "março", "marca", "marzec", "марта", "март", "мар", "березня", "mart", "březen", "března", "marts", "μαρτίου"], 3),
    (&["apr", "april", "avril", "avr", "abril", "abr", "aprile", "kwiecień", "kwietnia", "апреля", "апрель", "апр", "квітня", "nisan", "duben", "dubna", "απριλίου"], 4),
    (&["may", "mai", "mei", "mayo", "maggio", "mag", "maio", "maj", "maja", "мая", "май", "травня", "mayıs", "květen", "května", "μαΐου"], 5),
    (&["jun", "june", "juni", "juin", "junio", "giugno", "giu", "junho", "czerwiec", "czerwca", "июня", "июнь", "июн", "червня", "haziran", "červen", "června", "ιουνίου"], 6),
    (&["jul", "july", "juli", "juillet", "juil", "julio", "luglio", "lug", "julho", "lipiec", "lipca", "июля", "июль", "июл", "липня", "temmuz", "červenec", "července", "ιουλίου"], 7),
    (&["aug", "august", "augustus", "augusti", "août", "aout", "agosto", "ago", "sierpień", "sierpnia", "августа", "август", "авг", "серпня", "ağustos", "srpen", "srpna", "αυγούστου"], 8),
    (&["sep", "sept", "september", "septembre", "septiembre", "setiembre", "settembre", "set", "setembro", "wrzesień", "września", "сентября", "сентябрь", "сен", "вересня", "eylül", "září", "σεπτεμβρίου"], 9),
    (&["oct", "october", "oktober", "okt", "octobre", "octubre", "ottobre", "ott", "outubro", "out", "październik", "października", "октября", "октябрь", "окт", "жовтня", "ekim", "říjen", "října", "οκτωβρίου"], 10),
    (&["nov", "november", "novembre", "noviembre", "novembro", "listopad", "listopada", "ноября", "ноябрь", "ноя", "листопада", "kasım", "listopadu", "νοεμβρίου"], 11),
    (&["dec", "december", "dezember", "dez", "décembre", "decembre", "déc", "diciembre", "dic", "dicembre", "dezembro", "grudzień", "grudnia", "декабря", "декабрь", "дек", "грудня", "aralık", "prosinec", "prosince", "δεκεμβρίου"], 12),
];
