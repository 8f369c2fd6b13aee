//! The feeds and sitemaps of a site, found by asking it: its page, its
//! robots.txt, what they name, and the usual places. Each candidate counts only
//! if it parses and has something in it. One request at a time; how politely, is
//! for whoever asks to know.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tidings_feed::discovery::{
    Candidate, CandidateKind, Origin, Ranked, assess_feed, assess_sitemap, candidates, rank,
};
use tidings_feed::{Hints, sitemap};
use tidings_net::{Client, Failure, Purpose, Redirects, Request, Response, RobotsGate};
use tidings_url::FetchUrl;

/// Candidates of one kind that are tried before the rest are left alone.
const MOST_TRIED: usize = 30;

/// One candidate that was tried.
#[derive(Debug)]
pub struct ProbedCandidate<'a> {
    pub url: &'a str,
    pub is_found: bool,
}

/// How a site is asked while it is searched.
#[async_trait]
pub(crate) trait SiteProbe: Sync {
    async fn ask(&self, url: &FetchUrl, purpose: Purpose) -> Result<Response, Failure>;

    fn robots(&self) -> &RobotsGate;
}

/// For one who only looks, and keeps nothing: a pause before each request.
struct WithPauses<'a> {
    client: &'a Client,
    robots: &'a RobotsGate,
    pause: Duration,
}

#[async_trait]
impl SiteProbe for WithPauses<'_> {
    async fn ask(&self, url: &FetchUrl, purpose: Purpose) -> Result<Response, Failure> {
        if purpose != Purpose::Page {
            tokio::time::sleep(self.pause).await;
        }
        self.robots.permit(url).await?;
        let request = Request::get(url.clone(), purpose);
        self.client
            .fetch(request, Redirects::Check(self.robots))
            .await
    }

    fn robots(&self) -> &RobotsGate {
        self.robots
    }
}

/// Looks for the feeds and sitemaps of the site that a URL belongs to, the best
/// first. `tried` hears of every candidate.
pub async fn discover(
    client: &Client,
    robots: &RobotsGate,
    url: &FetchUrl,
    pause: Duration,
    now: Timestamp,
    tried: impl FnMut(ProbedCandidate<'_>),
) -> Result<Vec<Ranked>, Failure> {
    let site = WithPauses {
        client,
        robots,
        pause,
    };
    search(&site, url, now, tried).await
}

/// The same, asking as one is told to.
pub(crate) async fn search(
    site: &dyn SiteProbe,
    url: &FetchUrl,
    now: Timestamp,
    mut tried: impl FnMut(ProbedCandidate<'_>),
) -> Result<Vec<Ranked>, Failure> {
    let page = site.ask(url, Purpose::Page).await?;
    let rules = site.robots().rules(&page.url).await?;
    let listed: Vec<String> = rules
        .sitemaps
        .iter()
        .map(|line| format!("Sitemap: {line}"))
        .collect();
    let named = candidates(
        Some(&page.body),
        page.url.as_url(),
        Some(&listed.join("\n")),
    );
    let mut found: Vec<Ranked> = Vec::new();
    let mut asked = [0, 0];
    for candidate in named {
        let has_one = found
            .iter()
            .any(|known| known.candidate.kind == candidate.kind);
        let count = &mut asked[usize::from(candidate.kind == CandidateKind::Sitemap)];
        if (candidate.origin == Origin::Guess && has_one) || *count == MOST_TRIED {
            continue;
        }
        *count += 1;
        let address = candidate.url.clone();
        let assessed = if candidate.origin == Origin::Given {
            assess(candidate, &page, now)
        } else {
            // What is not there is no failure of the search.
            let answer = ask(site, &candidate).await;
            answer.and_then(|response| assess(candidate, &response, now))
        };
        tried(ProbedCandidate {
            url: &address,
            is_found: assessed.is_some(),
        });
        found.extend(assessed);
    }
    Ok(rank(without_twins(found)))
}

async fn ask(site: &dyn SiteProbe, candidate: &Candidate) -> Option<Response> {
    let url = FetchUrl::parse(&candidate.url).ok()?;
    let purpose = match candidate.kind {
        CandidateKind::Feed => Purpose::Feed,
        CandidateKind::Sitemap => Purpose::Sitemap,
    };
    let response = site.ask(&url, purpose).await.ok()?;
    response.is_success().then_some(response)
}

/// What a candidate turned out to be, if it is of use.
fn assess(candidate: Candidate, response: &Response, now: Timestamp) -> Option<Ranked> {
    // Its address is where it was found, not where it was looked for.
    let candidate = Candidate {
        url: response.url.as_str().to_owned(),
        ..candidate
    };
    let hints = Hints {
        content_type: response.header("content-type"),
        url: Some(response.url.as_url()),
        now: Some(now),
        ..Hints::default()
    };
    match candidate.kind {
        CandidateKind::Feed => {
            let feed = tidings_feed::parse(&response.body, &hints).ok()?;
            assess_feed(candidate, &feed, now)
        }
        CandidateKind::Sitemap => {
            let sitemap = sitemap::parse(&response.body, &hints).ok()?;
            assess_sitemap(candidate, &sitemap, now)
        }
    }
}

/// Two addresses that led to the same place are one find.
fn without_twins(found: Vec<Ranked>) -> Vec<Ranked> {
    let mut seen = std::collections::HashSet::new();
    let is_first = |ranked: &Ranked| seen.insert(ranked.candidate.url.clone());
    found.into_iter().filter(is_first).collect()
}
