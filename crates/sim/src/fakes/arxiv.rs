//! A fake arXiv: Atom by `search_query` with a range of dates, slices of at most
//! 2,000, errors as a feed with one entry.

use std::io;

use super::api::{ApiState, FakeApi, Parameters, time};
use super::http::{Call, Reply};

impl FakeApi {
    pub async fn arxiv() -> io::Result<Self> {
        Self::start(respond).await
    }
}

fn feed(status: u16, total: usize, entries: &str) -> Reply {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\
         <title>ArXiv Query</title><id>http://arxiv.org/api/x</id>\
         <opensearch:totalResults xmlns:opensearch=\"http://a9.com/-/spec/opensearch/1.1/\">{total}</opensearch:totalResults>\
         {entries}</feed>"
    );
    Reply::Response {
        status,
        headers: vec![(
            "Content-Type",
            "application/atom+xml; charset=UTF-8".to_owned(),
        )],
        body: body.into_bytes(),
    }
}

fn error(message: &str) -> Reply {
    let entry = format!(
        "<entry><id>http://arxiv.org/api/errors#x</id><title>Error</title><summary>{message}</summary></entry>"
    );
    feed(400, 1, &entry)
}

fn respond(state: &mut ApiState, call: &Call, parameters: &Parameters) -> Reply {
    if call.path != "/api/query" {
        return Reply::text(404, "not found");
    }
    let size = parameters.number("max_results", 10);
    if size > 2000 {
        return error("max_results must be 2000 or less");
    }
    let query = parameters.get("search_query").unwrap_or_default();
    if query.contains("bad:") {
        return error("incorrect field in query");
    }
    let range = query
        .split_once("submittedDate:[")
        .and_then(|(_, rest)| rest.split_once(" TO "));
    let Some((from, _)) = range else {
        return error("no dates");
    };
    // To the minute, as the service counts.
    let stamp = |at: i64| {
        let time = jiff::Timestamp::from_second(at).unwrap_or_default();
        time.strftime("%Y%m%d%H%M").to_string()
    };
    let mut listed: Vec<_> = state
        .stories
        .iter()
        .filter(|story| stamp(story.at).as_str() >= from)
        .collect();
    listed.sort_by_key(|story| (story.at, story.id));
    let entries: String = listed
        .iter()
        .skip(parameters.number("start", 0))
        .take(size)
        .map(|story| {
            let (id, at) = (story.id, time(story.at));
            format!(
                "<entry><id>http://arxiv.org/abs/2611.{id:05}v2</id><title>{}</title><published>{at}</published>\
                 <updated>{at}</updated><summary>  {}\n</summary><author><name>{}</name></author>\
                 <link href=\"http://arxiv.org/abs/2611.{id:05}v2\" rel=\"alternate\" type=\"text/html\"/>\
                 <category term=\"cs.CL\"/></entry>",
                story.title, story.text, story.author
            )
        })
        .collect();
    feed(200, listed.len(), &entries)
}
