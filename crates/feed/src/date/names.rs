//! Names of months and weekdays in the languages that feeds are written in.
//! Compared without case, accents and dots, by their first letters.

use jiff::civil::Weekday;

/// English, by three letters in any case.
pub(super) fn english_month(name: &[u8]) -> Option<i8> {
    let lower = [name[0], name[1], name[2]].map(|byte| byte.to_ascii_lowercase());
    let month = match &lower {
        b"jan" => 1,
        b"feb" => 2,
        b"mar" => 3,
        b"apr" => 4,
        b"may" => 5,
        b"jun" => 6,
        b"jul" => 7,
        b"aug" => 8,
        b"sep" => 9,
        b"oct" => 10,
        b"nov" => 11,
        b"dec" => 12,
        _ => return None,
    };
    Some(month)
}

/// Full names; an abbreviation is any beginning of three letters or more that
/// fits months of one number only.
const MONTHS: &[(&str, i8)] = &[
    // English
    ("january", 1),
    ("february", 2),
    ("march", 3),
    ("april", 4),
    ("may", 5),
    ("june", 6),
    ("july", 7),
    ("august", 8),
    ("september", 9),
    ("october", 10),
    ("november", 11),
    ("december", 12),
    ("sept", 9),
    // German, Dutch and Scandinavian
    ("januar", 1),
    ("janner", 1),
    ("jaenner", 1),
    ("januari", 1),
    ("februar", 2),
    ("feber", 2),
    ("februari", 2),
    ("marz", 3),
    ("maerz", 3),
    ("mrz", 3),
    ("maart", 3),
    ("mrt", 3),
    ("mars", 3),
    ("mai", 5),
    ("mei", 5),
    ("maj", 5),
    ("juni", 6),
    ("juli", 7),
    ("augustus", 8),
    ("augusti", 8),
    ("oktober", 10),
    ("okt", 10),
    ("dezember", 12),
    ("desember", 12),
    // French
    ("janvier", 1),
    ("fevrier", 2),
    ("avril", 4),
    ("juin", 6),
    ("juillet", 7),
    ("aout", 8),
    ("septembre", 9),
    ("octobre", 10),
    ("novembre", 11),
    ("decembre", 12),
    // Spanish
    ("enero", 1),
    ("febrero", 2),
    ("marzo", 3),
    ("abril", 4),
    ("mayo", 5),
    ("junio", 6),
    ("julio", 7),
    ("agosto", 8),
    ("septiembre", 9),
    ("setiembre", 9),
    ("octubre", 10),
    ("noviembre", 11),
    ("diciembre", 12),
    // Italian
    ("gennaio", 1),
    ("febbraio", 2),
    ("aprile", 4),
    ("maggio", 5),
    ("giugno", 6),
    ("luglio", 7),
    ("settembre", 9),
    ("ottobre", 10),
    ("dicembre", 12),
    // Portuguese
    ("janeiro", 1),
    ("fevereiro", 2),
    ("marco", 3),
    ("maio", 5),
    ("junho", 6),
    ("julho", 7),
    ("setembro", 9),
    ("outubro", 10),
    ("novembro", 11),
    ("dezembro", 12),
    // Polish, in the genitive that dates use
    ("stycznia", 1),
    ("lutego", 2),
    ("marca", 3),
    ("kwietnia", 4),
    ("maja", 5),
    ("czerwca", 6),
    ("lipca", 7),
    ("sierpnia", 8),
    ("wrzesnia", 9),
    ("pazdziernika", 10),
    ("listopada", 11),
    ("grudnia", 12),
    // Hungarian
    ("januar", 1),
    ("marcius", 3),
    ("aprilis", 4),
    ("majus", 5),
    ("junius", 6),
    ("julius", 7),
    ("augusztus", 8),
    ("szeptember", 9),
    // Russian
    ("января", 1),
    ("февраля", 2),
    ("марта", 3),
    ("апреля", 4),
    ("мая", 5),
    ("май", 5),
    ("июня", 6),
    ("июля", 7),
    ("августа", 8),
    ("сентября", 9),
    ("октября", 10),
    ("ноября", 11),
    ("декабря", 12),
    // Greek, accents removed
    ("ιανουαριου", 1),
    ("φεβρουαριου", 2),
    ("μαρτιου", 3),
    ("μαρτης", 3),
    ("απριλιου", 4),
    ("μαιου", 5),
    ("ιουνιου", 6),
    ("ιουλιου", 7),
    ("αυγουστου", 8),
    ("σεπτεμβριου", 9),
    ("οκτωβριου", 10),
    ("νοεμβριου", 11),
    ("δεκεμβριου", 12),
];

/// The month of a name or an abbreviation of it.
pub(super) fn month(word: &str) -> Option<i8> {
    let word = plain(word);
    if word.chars().count() < 3 {
        return None;
    }
    if let Some((_, month)) = MONTHS.iter().find(|(name, _)| *name == word) {
        return Some(*month);
    }
    let mut found = None;
    for (name, month) in MONTHS {
        if name.starts_with(&word) {
            match found {
                Some(other) if other != *month => return None,
                _ => found = Some(*month),
            }
        }
    }
    found
}

const WEEKDAYS: &[(&str, Weekday)] = &[
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

/// An English weekday, which may show which number is the day.
pub(super) fn weekday(word: &str) -> Option<Weekday> {
    let word = plain(word);
    let found = WEEKDAYS.iter().find(|(start, _)| word.starts_with(start));
    found.map(|(_, weekday)| *weekday)
}

/// Lower case, without the accents and dots of the languages above.
fn plain(word: &str) -> String {
    let mut plain = String::with_capacity(word.len());
    for c in word.chars().flat_map(char::to_lowercase) {
        plain.push(match c {
            'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' => 'a',
            'é' | 'è' | 'ê' | 'ë' | 'ę' => 'e',
            'í' | 'ì' | 'î' | 'ï' => 'i',
            'ó' | 'ò' | 'ô' | 'õ' | 'ö' | 'ő' => 'o',
            'ú' | 'ù' | 'û' | 'ü' | 'ű' => 'u',
            'ç' | 'ć' => 'c',
            'ñ' | 'ń' => 'n',
            'ś' => 's',
            'ź' | 'ż' => 'z',
            'ł' => 'l',
            'ά' => 'α',
            'έ' => 'ε',
            'ή' => 'η',
            'ί' | 'ϊ' | 'ΐ' => 'ι',
            'ό' => 'ο',
            'ύ' | 'ϋ' | 'ΰ' => 'υ',
            'ώ' => 'ω',
            '.' => continue,
            c => c,
        });
    }
    plain
}
