//! Labels of charsets: where documents name one, and which encoding
//! a name means. Knows more names than the Encoding Standard, and never UTF-7.

use encoding_rs::{Encoding, WINDOWS_1252, X_USER_DEFINED};

use super::Declaration;
use crate::meta;

/// How far into a document its XML declaration may stand.
const MAX_XML_SCAN: usize = 1024;

/// The encoding that a document declares for itself.
pub(super) fn declared(bytes: &[u8], declaration: Declaration) -> Option<&'static Encoding> {
    let from_xml = || in_xml_declaration(bytes).and_then(encoding);
    match declaration {
        Declaration::Xml => from_xml(),
        Declaration::Html => meta::tags(bytes)
            .find_map(|meta| meta.declared_charset().and_then(encoding))
            .or_else(from_xml),
    }
}

fn in_xml_declaration(bytes: &[u8]) -> Option<&str> {
    let head = &bytes[..bytes.len().min(MAX_XML_SCAN)];
    let start = memchr::memmem::find(head, b"<?xml")?;
    let end = start + memchr::memchr(b'>', &head[start..])?;
    let declaration = &head[start..end];
    let at = memchr::memmem::find(declaration, b"encoding")? + "encoding".len();
    let value = std::str::from_utf8(&declaration[at..]).ok()?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    value[1..].split(quote).next()
}

/// The encoding that a label names. Never the replacement encoding, which would
/// turn the whole document into one U+FFFD.
pub(super) fn encoding(label: &str) -> Option<&'static Encoding> {
    let label = label.trim().trim_matches(['"', '\'']);
    let encoding =
        Encoding::for_label_no_replacement(label.as_bytes()).or_else(|| by_code_page(label))?;
    Some(match encoding == X_USER_DEFINED {
        true => WINDOWS_1252,
        false => encoding,
    })
}

/// Names of Windows and Unix code pages beyond the web's own list.
fn by_code_page(label: &str) -> Option<&'static Encoding> {
    let lower = label.to_ascii_lowercase().replace('_', "-");
    let page = lower
        .strip_prefix("cp-")
        .or_else(|| lower.strip_prefix("cp"))
        .or_else(|| lower.strip_prefix("windows"))
        .or_else(|| lower.strip_prefix("win-"))
        .or_else(|| lower.strip_prefix("ms"))
        .unwrap_or(&lower);
    let name = match page {
        "932" => "shift_jis",
        "936" | "gb2312-80" => "gbk",
        "949" => "euc-kr",
        "950" => "big5",
        "65001" | "utf8mb4" => "utf-8",
        "28591" => "iso-8859-1",
        digits if digits.starts_with("125") => {
            return Encoding::for_label(format!("windows-{digits}").as_bytes());
        }
        other => other,
    };
    Encoding::for_label_no_replacement(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_beyond_the_standard_are_known() {
        let rows = [
            ("UTF8", Some("UTF-8")),
            (" \"latin1\" ", Some("windows-1252")),
            ("cp1251", Some("windows-1251")),
            ("windows1250", Some("windows-1250")),
            ("CP932", Some("Shift_JIS")),
            ("utf8mb4", Some("UTF-8")),
            ("x-user-defined", Some("windows-1252")),
            ("iso-2022-jp", Some("ISO-2022-JP")),
            ("iso-2022-kr", None),
            ("utf-7", None),
            ("klingon", None),
            ("", None),
        ];
        for (label, name) in rows {
            assert_eq!(encoding(label).map(Encoding::name), name, "{label}");
        }
    }
}
