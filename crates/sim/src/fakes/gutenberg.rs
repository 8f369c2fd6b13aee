//! A fake Project Gutenberg: the packed catalogue of all titles, and plain texts
//! between markers. A title whose text is empty has none.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::api::{ApiState, FakeApi, Parameters, time};
use super::http::{Call, Reply};

impl FakeApi {
    pub async fn gutenberg() -> io::Result<Self> {
        Self::start(respond).await
    }
}

fn respond(state: &mut ApiState, call: &Call, _: &Parameters) -> Reply {
    if call.path == "/cache/epub/feeds/pg_catalog.csv.gz" {
        let reply = Reply::Response {
            status: 200,
            headers: vec![("Content-Type", "application/x-gzip".to_owned())],
            body: catalogue(state).unwrap_or_default(),
        };
        // Some servers say so of files that are packed anyway.
        return match state.encodes_files {
            true => reply.with("Content-Encoding", "gzip"),
            false => reply,
        };
    }
    let number = call
        .path
        .rsplit("/pg")
        .next()
        .and_then(|name| name.strip_suffix(".txt"));
    let found = state
        .stories
        .iter()
        .find(|book| number == Some(book.id.to_string().as_str()));
    match found.filter(|book| !book.text.is_empty()) {
        Some(book) => Reply::text(
            200,
            &format!(
                "The Project Gutenberg eBook of {0}\r\n\r\n*** START OF THE PROJECT GUTENBERG EBOOK {0} ***\r\n\r\n\
                 {1}\r\n\r\n*** END OF THE PROJECT GUTENBERG EBOOK {0} ***\r\nLicence",
                book.title, book.text
            ),
        ),
        None => Reply::text(404, "Not Found"),
    }
}

fn catalogue(state: &ApiState) -> io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let head = "Text#,Type,Issued,Title,Language,Authors,Subjects,LoCC,Bookshelves\n";
    packed.write_all(head.as_bytes())?;
    for book in &state.stories {
        let (id, day) = (book.id, &time(book.at)[..10]);
        writeln!(
            packed,
            "{id},Text,{day},\"{}\",en,\"{}, 1812-1870\",\"{}\",PR,\"Browsing\"",
            book.title, book.author, book.subject
        )?;
    }
    packed.finish()
}
