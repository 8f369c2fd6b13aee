//! Time zones by name. Abbreviations have one offset; the names of places and
//! of American time follow the rules of summer time.

use jiff::civil::{Date, Weekday};

/// Seconds east of Greenwich for an abbreviation.
pub(super) fn fixed(name: &str) -> Option<i32> {
    let minutes = match name.to_ascii_uppercase().as_str() {
        "Z" | "UT" | "UTC" | "GMT" | "WET" | "G" | "GMTZ" => 0,
        "EST" => -300,
        "EDT" => -240,
        "CST" => -360,
        "CDT" => -300,
        "MST" => -420,
        "MDT" => -360,
        "PST" => -480,
        "PDT" => -420,
        "AKST" => -540,
        "AKDT" => -480,
        "HST" => -600,
        "AST" => -240,
        "ADT" => -180,
        "NST" => -210,
        "NDT" => -150,
        "BRT" | "ART" | "BRST" => -180,
        "CET" | "MET" | "MEZ" | "WEST" | "BST" | "MEWT" | "SWT" | "FWT" => 60,
        "CEST" | "MEST" | "MESZ" | "EET" | "SAST" | "CAT" | "SST" | "FST" => 120,
        "EEST" | "MSK" | "EAT" | "TRT" | "BT" => 180,
        "MSD" | "GST" => 240,
        "PKT" => 300,
        "IST" => 330,
        "NPT" => 345,
        "ICT" | "WIB" => 420,
        "HKT" | "SGT" | "PHT" | "AWST" | "MYT" | "CCT" => 480,
        "JST" | "KST" => 540,
        "ACST" => 570,
        "AEST" => 600,
        "ACDT" => 630,
        "AEDT" => 660,
        "NZST" | "NZT" => 720,
        "NZDT" => 780,
        _ => return None,
    };
    Some(minutes * 60)
}

#[derive(Clone, Copy)]
enum Summer {
    Never,
    America,
    Europe,
}

/// Seconds east for a place or a name of general time, on a day. The hours of
/// the change itself are taken as the new time.
pub(super) fn on_day(name: &str, date: Date) -> Option<i32> {
    let lower = name.to_ascii_lowercase();
    let (minutes, summer) = match lower.as_str() {
        "et" | "us/eastern" | "america/new_york" | "america/toronto" | "america/detroit" => {
            (-300, Summer::America)
        }
        "ct" | "us/central" | "america/chicago" => (-360, Summer::America),
        "mt" | "us/mountain" | "america/denver" => (-420, Summer::America),
        "pt" | "us/pacific" | "america/los_angeles" | "america/vancouver" => {
            (-480, Summer::America)
        }
        "america/phoenix" => (-420, Summer::Never),
        "america/sao_paulo" | "america/argentina/buenos_aires" => (-180, Summer::Never),
        "america/bogota" | "america/lima" => (-300, Summer::Never),
        "europe/london" | "europe/dublin" | "europe/lisbon" => (0, Summer::Europe),
        "europe/athens" | "europe/helsinki" | "europe/kiev" | "europe/kyiv"
        | "europe/bucharest" | "europe/sofia" | "europe/riga" | "europe/tallinn"
        | "europe/vilnius" => (120, Summer::Europe),
        "europe/moscow" | "europe/istanbul" | "europe/minsk" => (180, Summer::Never),
        "asia/tokyo" | "asia/seoul" => (540, Summer::Never),
        "asia/shanghai" | "asia/hong_kong" | "asia/singapore" | "asia/taipei" | "asia/manila" => {
            (480, Summer::Never)
        }
        "asia/kolkata" | "asia/calcutta" => (330, Summer::Never),
        "asia/dubai" => (240, Summer::Never),
        "asia/bangkok" | "asia/jakarta" | "asia/ho_chi_minh" => (420, Summer::Never),
        "australia/brisbane" => (600, Summer::Never),
        "etc/gmt" | "etc/utc" | "africa/abidjan" => (0, Summer::Never),
        "africa/johannesburg" | "africa/cairo" => (120, Summer::Never),
        "africa/nairobi" => (180, Summer::Never),
        "africa/lagos" => (60, Summer::Never),
        // The rest of the continent keeps Central European Time.
        name if name.starts_with("europe/") => (60, Summer::Europe),
        _ => return None,
    };
    let hour = if is_summer(summer, date) { 60 } else { 0 };
    Some((minutes + hour) * 60)
}

fn is_summer(rule: Summer, date: Date) -> bool {
    let year = date.year();
    let (from, to) = match rule {
        Summer::Never => return false,
        Summer::America if year >= 2007 => (sunday(year, 3, 2), sunday(year, 11, 1)),
        Summer::America => (sunday(year, 4, 1), sunday(year, 10, -1)),
        Summer::Europe => (sunday(year, 3, -1), sunday(year, 10, -1)),
    };
    matches!((from, to), (Some(from), Some(to)) if from <= date && date < to)
}

/// The n-th Sunday of a month, or the last with -1.
fn sunday(year: i16, month: i8, nth: i8) -> Option<Date> {
    let first = Date::new(year, month, 1).ok()?;
    first.nth_weekday_of_month(nth, Weekday::Sunday).ok()
}
