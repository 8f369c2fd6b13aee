//! What an address is made of, as far as it says something about the page: the
//! parts of its path, a date in them, the words of its last part, its parameters.

use jiff::civil::Date;
use tidings_url::FetchUrl;

use crate::words;

/// Parts and parameters that are read; an address with more is a trap.
const MAX_PARTS: usize = 40;

/// An address in its parts, in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) segments: Vec<String>,
    /// What stands behind the last dot of the last segment, if it names a format.
    pub(crate) ending: Option<String>,
    /// Names in lower case, values as they are; without sessions.
    pub(crate) query: Vec<(String, String)>,
}

/// A date in a path, and the segment behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathDate {
    pub(crate) date: Date,
    pub(crate) end: usize,
}

impl Parts {
    pub(crate) fn of(url: &FetchUrl) -> Self {
        let url = url.as_url();
        let path = url.path().to_ascii_lowercase();
        let segments = path.split('/').filter(|part| !part.is_empty());
        let mut segments: Vec<String> = segments.take(MAX_PARTS).map(str::to_owned).collect();
        let ending = segments.last_mut().and_then(|last| {
            let (name, ending) = last.rsplit_once('.')?;
            let is_known = words::is_page(ending) || words::is_media(ending);
            let (name, ending) = (name.to_owned(), ending.to_owned());
            (is_known && !name.is_empty()).then(|| {
                *last = name;
                ending
            })
        });
        let query = url
            .query_pairs()
            .take(MAX_PARTS)
            .map(|(name, value)| (name.to_ascii_lowercase(), value.into_owned()))
            .filter(|(name, value)| !words::is_session(name, value))
            .collect();
        Self {
            segments,
            ending,
            query,
        }
    }

    pub(crate) fn last(&self) -> &str {
        self.segments.last().map_or("", String::as_str)
    }

    /// The segment before the last.
    pub(crate) fn above(&self) -> &str {
        let at = self.segments.len().wrapping_sub(2);
        self.segments.get(at).map_or("", String::as_str)
    }

    /// Words of the last segment: parts with something in them, of which two at
    /// least are no numbers.
    pub(crate) fn slug_words(&self) -> usize {
        let parts = self.last().split(['-', '_', '+', ',']);
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let is_word = |part: &&&str| part.bytes().any(|byte| !byte.is_ascii_digit());
        match parts.iter().filter(is_word).count() >= 2 {
            true => parts.len(),
            false => 0,
        }
    }

    /// The longest run of digits at the start or the end of the last segment.
    pub(crate) fn id_digits(&self) -> usize {
        let last = self.last();
        let is_digit = |c: char| c.is_ascii_digit();
        let tail = last.len() - last.trim_end_matches(is_digit).len();
        let head = last.len() - last.trim_start_matches(is_digit).len();
        tail.max(head)
    }

    /// The first date of the path.
    pub(crate) fn date(&self) -> Option<PathDate> {
        (0..self.segments.len()).find_map(|at| self.date_at(at))
    }

    fn date_at(&self, at: usize) -> Option<PathDate> {
        let segment = |at: usize| self.segments.get(at).map(String::as_str);
        let first = segment(at)?;
        if let Some(date) = whole_date(first) {
            return Some(PathDate { date, end: at + 1 });
        }
        let year = year(first)?;
        let month = month(segment(at + 1)?)?;
        let with_day = segment(at + 2)
            .filter(|day| day.len() <= 2)
            .and_then(|day| day.parse().ok())
            .and_then(|day| Date::new(year, month, day).ok());
        match with_day {
            Some(date) => Some(PathDate { date, end: at + 3 }),
            None => Some(PathDate {
                date: Date::new(year, month, 1).ok()?,
                end: at + 2,
            }),
        }
    }

    /// Which page of a list it is, if it says so.
    pub(crate) fn page_number(&self) -> Option<u32> {
        let in_path = match (self.above(), self.last()) {
            ("page" | "seite" | "pagina", number) => number.parse().ok(),
            (_, last) => last
                .strip_prefix("page-")
                .or_else(|| last.strip_prefix("page"))
                .and_then(|number| number.parse().ok()),
        };
        let in_query = || {
            let (name, value) = self.query.first()?;
            let is_alone = self.query.len() == 1;
            (is_alone && words::is_page_param(name)).then(|| value.parse().ok())?
        };
        in_path.or_else(in_query)
    }

    /// The same for all addresses of one pattern: numbers and slugs count
    /// as what they are, not by what they say.
    pub(crate) fn shape(&self) -> String {
        let kind = |part: &String| match part {
            part if part.bytes().all(|byte| byte.is_ascii_digit()) => "#",
            part if part.contains(['-', '_']) => "-",
            _ => "*",
        };
        let first = match self.segments.len() {
            0 | 1 => "",
            _ => match kind(&self.segments[0]) {
                "*" => &self.segments[0],
                kind => kind,
            },
        };
        let rest = self
            .segments
            .iter()
            .skip(usize::from(self.segments.len() > 1));
        let rest: Vec<&str> = rest.map(kind).collect();
        let names: Vec<&str> = self.query.iter().map(|(name, _)| name.as_str()).collect();
        let ending = self.ending.as_deref().unwrap_or_default();
        format!("{first}/{}.{ending}?{}", rest.join("/"), names.join("&"))
    }
}

fn year(text: &str) -> Option<i16> {
    let year: i16 = (text.len() == 4).then(|| text.parse().ok())??;
    // Calendars go on for ever, articles don't.
    (1980..=9999).contains(&year).then_some(year)
}

fn month(text: &str) -> Option<i8> {
    const NAMES: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let named = NAMES.iter().position(|name| *name == text);
    let numbered = || (text.len() <= 2).then(|| text.parse().ok())?;
    let month = named.map(|at| at as i8 + 1).or_else(numbered)?;
    (1..=12).contains(&month).then_some(month)
}

/// `2026-11-15`, `2026-11` or `20261115`.
fn whole_date(text: &str) -> Option<Date> {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (y, m, d) = match text.len() {
        8 if is_digits(text) => (&text[..4], &text[4..6], &text[6..]),
        _ => {
            let mut parts = text.split('-');
            let (y, m, d) = (parts.next()?, parts.next()?, parts.next().unwrap_or("1"));
            if parts.next().is_some() || ![y, m, d].into_iter().all(is_digits) {
                return None;
            }
            (y, m, d)
        }
    };
    Date::new(year(y)?, month(m)?, d.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str) -> Parts {
        Parts::of(&FetchUrl::parse(&format!("https://a.example{path}")).unwrap())
    }

    #[test]
    fn dates_are_found_where_they_stand() {
        let rows = [
            ("/2026/11/15/a-slug", Some(("2026-11-15", 3))),
            ("/news/2026/11/a-slug", Some(("2026-11-01", 3))),
            ("/world/2026/nov/15/a-slug", Some(("2026-11-15", 4))),
            ("/2026-11-15/a", Some(("2026-11-15", 1))),
            ("/archive/20261115", Some(("2026-11-15", 2))),
            ("/2026/13/x", None),
            ("/20261399", None),
            ("/news/1234/5", None),
            ("/", None),
        ];
        for (path, expected) in rows {
            let found = parts(path).date();
            let found = found.map(|found| (found.date.to_string(), found.end));
            let expected = expected.map(|(date, end)| (date.to_owned(), end));
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn words_numbers_and_pages_are_counted() {
        let rows = [
            ("/council-votes-on-harbour", 4, 0, None),
            ("/council-votes-on-harbour-12.html", 5, 2, None),
            ("/12345678", 0, 8, None),
            ("/2026-11", 0, 4, None),
            ("/page/3", 0, 1, Some(3)),
            ("/world?page=4", 0, 0, Some(4)),
            ("/world?page=4&sort=a", 0, 0, None),
            ("/world/page-2", 0, 1, Some(2)),
        ];
        for (path, words, digits, page) in rows {
            let parts = parts(path);
            let found = (parts.slug_words(), parts.id_digits(), parts.page_number());
            assert_eq!(found, (words, digits, page), "{path}");
        }
    }
}
