//! Whether URLs would be new if they were submitted, by the same rules and without
//! writing anything: for dry runs, and to see how a feed uses its guids.

use std::collections::{HashMap, HashSet};

use crate::counters::stored_status;
use crate::engine::{QueryResult, Statement, Value};
use crate::error::Result;
use crate::frontier::{GuidHash, Newness, Status, Submission, TitleHash};
use crate::ids::{FrontierId, HostId, UrlId};
use crate::store::Store;

/// Submissions that are judged in one transaction.
const BATCH: usize = 200;

/// How a URL is known: as itself, or by the kind of the alias that it is.
const KNOWN_URL: &str = "SELECT 'url' FROM urls WHERE host_id = $1 AND url_id = $2
    UNION ALL SELECT kind FROM aliases WHERE host_id = $1 AND url_id = $2";

/// The URL that a guid was listed with, the page which that is or redirects to, and
/// its status.
const KNOWN_GUID: &str = "SELECT g.host_id, g.url_id, coalesce(a.target_host_id, g.host_id), coalesce(a.target_url_id, g.url_id), u.status
    FROM seen_guids g
    LEFT JOIN aliases a ON a.host_id = g.host_id AND a.url_id = g.url_id
    LEFT JOIN urls u ON u.host_id = coalesce(a.target_host_id, g.host_id) AND u.url_id = coalesce(a.target_url_id, g.url_id)
    WHERE g.source_id = $1 AND g.guid_hash = $2";

const KNOWN_TITLE: &str = "SELECT 1 FROM seen_titles WHERE source_id = $1 AND title_hash = $2";

/// What was judged before in the same list.
#[derive(Default)]
struct Listed {
    urls: HashSet<FrontierId>,
    titles: HashSet<(i64, TitleHash)>,
    guids: HashMap<(i64, GuidHash), FrontierId>,
}

impl Store {
    /// Judges what `submit` would say of each, in order.
    pub async fn judge(&self, submissions: &[Submission]) -> Result<Vec<Newness>> {
        let mut listed = Listed::default();
        let mut judged = Vec::with_capacity(submissions.len());
        for batch in submissions.chunks(BATCH) {
            let questions = batch.iter().flat_map(questions).collect();
            let mut answers = self.run(questions).await?.into_iter();
            for submission in batch {
                let [url, guid, title] = [(); 3].map(|()| answers.next().unwrap_or_default());
                judged.push(listed.judge(submission, &url, &guid, &title)?);
            }
        }
        Ok(judged)
    }

    /// The URLs that a source has listed guids with, where it has.
    pub async fn urls_of_guids(
        &self,
        source_id: i64,
        guids: &[GuidHash],
    ) -> Result<Vec<Option<FrontierId>>> {
        let mut found = Vec::with_capacity(guids.len());
        for batch in guids.chunks(BATCH) {
            let question = |guid: &GuidHash| {
                let values = [Value::Int(source_id), Value::from(&guid[..])];
                Statement::new(KNOWN_GUID, values)
            };
            for answer in self.run(batch.iter().map(question).collect()).await? {
                let row = answer.rows.first();
                let id = row.map(|row| frontier_id(row.int(0)?, row.half_key(1)?));
                found.push(id.transpose()?);
            }
        }
        Ok(found)
    }
}

fn frontier_id(host: i64, url: [u8; 16]) -> Result<FrontierId> {
    Ok(FrontierId {
        host: HostId(host),
        url: UrlId(url),
    })
}

/// By URL, by guid, by title. A missing hash matches nothing.
fn questions(submission: &Submission) -> [Statement; 3] {
    let id = submission.target.id();
    let of_source = |hash: Option<[u8; 16]>| {
        let hash = hash.as_ref().map(|hash| &hash[..]);
        [Value::Int(submission.source_id), Value::from(hash)]
    };
    let url = [Value::Int(id.host.0), Value::from(&id.url.0[..])];
    [
        Statement::new(KNOWN_URL, url),
        Statement::new(KNOWN_GUID, of_source(submission.guid)),
        Statement::new(KNOWN_TITLE, of_source(submission.title)),
    ]
}

impl Listed {
    fn judge(
        &mut self,
        submission: &Submission,
        url: &QueryResult,
        guid: &QueryResult,
        title: &QueryResult,
    ) -> Result<Newness> {
        let (id, source) = (submission.target.id(), submission.source_id);
        let is_repeated = !self.urls.insert(id);
        let other = match submission.guid {
            Some(guid) => *self.guids.entry((source, guid)).or_insert(id),
            None => id,
        };
        let mut is_replaced = false;
        let mut is_guid_known = other != id;
        if let Some(row) = guid.rows.first() {
            let first = frontier_id(row.int(0)?, row.half_key(1)?)?;
            let target = frontier_id(row.int(2)?, row.half_key(3)?)?;
            let status = row.optional_int(4)?;
            let status = status.map(|code| stored_status(code as i16));
            let is_alive = status.is_some_and(|status| status != Status::Dead);
            is_replaced = first != id && (!is_alive || target == id);
            is_guid_known |= first != id && !is_replaced;
        }
        let known_by = url.rows.iter().map(|row| row.text(0));
        let known_by = known_by.collect::<Result<Vec<_>>>()?;
        let is_known = known_by.iter().any(|by| by != "guid" || !is_replaced);
        let is_title_known = !title.rows.is_empty()
            || submission
                .title
                .is_some_and(|title| !self.titles.insert((source, title)));
        Ok(match () {
            () if is_guid_known && known_by.iter().all(|by| by == "guid") => Newness::Guid,
            () if is_repeated || is_known => Newness::Url,
            () if is_title_known => Newness::Title,
            () => Newness::New,
        })
    }
}
