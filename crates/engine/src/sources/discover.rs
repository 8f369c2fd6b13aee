//! Discovery of the feeds and sitemaps of a site: its page, its robots.txt, the
//! URLs they name, and the usual paths. A candidate counts only if it parses and
//! is not empty. One request at a time; the caller supplies the politeness.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tidings_feed::discovery::{
    Candidate, CandidateKind, Origin, Ranked, assess_feed, assess_sitemap, candidates, rank,
};
use tidings_feed::{Hints, sitemap};
use tidings_net::{Client, Failure, Purpose, Redirects, Request, Response, RobotsGate};
use tidings_url::FetchUrl;

/// Candidates of one kind that are fetched at most.
const MAX_PROBES: usize = 30;

/// One candidate that was fetched.
#[derive(Debug)]
pub struct ProbedCandidate<'a> {
    pub url: &'a str,
    pub is_found: bool,
}

/// How the requests of a search are made.
#[async_trait]
pub(crate) trait SiteProbe: Sync {
    async fn fetch(&self, url: &FetchUrl, purpose: Purpose) -> Result<Response, Failure>;

    fn robots(&self) -> &RobotsGate;
}

/// For a one-off search without a store: a fixed delay before each request.
struct DelayedProbe<'a> {
    client: &'a Client,
    robots: &'a RobotsGate,
    delay: Duration,
}

#[async_trait]
impl SiteProbe for DelayedProbe<'_> {
    async fn fetch(&self, url: &FetchUrl, purpose: Purpose) -> Result<Response, Failure> {
        if purpose != Purpose::Page {
            tokio::time::sleep(self.delay).await;
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

/// Searches the site of a URL for feeds and sitemaps, the best first. `on_probe` is
/// called for every candidate.
pub async fn discover(
    client: &Client,
    robots: &RobotsGate,
    url: &FetchUrl,
    delay: Duration,
    now: Timestamp,
    on_probe: impl FnMut(ProbedCandidate<'_>),
) -> Result<Vec<Ranked>, Failure> {
    let site = DelayedProbe {
        client,
        robots,
        delay,
    };
    search_site(&site, url, now, on_probe).await
}

/// The same, with the requests of a [`SiteProbe`].
pub(crate) async fn search_site(
    site: &dyn SiteProbe,
    url: &FetchUrl,
    now: Timestamp,
    mut on_probe: impl FnMut(ProbedCandidate<'_>),
) -> Result<Vec<Ranked>, Failure> {
    let page = site.fetch(url, Purpose::Page).await?;
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
    let mut probes = [0, 0];
    for candidate in named {
        let has_one = found
            .iter()
            .any(|known| known.candidate.kind == candidate.kind);
        let count = &mut probes[usize::from(candidate.kind == CandidateKind::Sitemap)];
        if (candidate.origin == Origin::Guess && has_one) || *count == MAX_PROBES {
            continue;
        }
        *count += 1;
        let address = candidate.url.clone();
        let assessed = if candidate.origin == Origin::Given {
            assess(candidate, &page, now)
        } else {
            // A missing candidate is no failure of the search.
            let response = fetch(site, &candidate).await;
            response.and_then(|response| assess(candidate, &response, now))
        };
        on_probe(ProbedCandidate {
            url: &address,
            is_found: assessed.is_some(),
        });
        found.extend(assessed);
    }
    Ok(rank(without_duplicates(found)))
}

async fn fetch(site: &dyn SiteProbe, candidate: &Candidate) -> Option<Response> {
    let url = FetchUrl::parse(&candidate.url).ok()?;
    let purpose = match candidate.kind {
        CandidateKind::Feed => Purpose::Feed,
        CandidateKind::Sitemap => Purpose::Sitemap,
    };
    let response = site.fetch(&url, purpose).await.ok()?;
    response.is_success().then_some(response)
}

/// The rank of a candidate that parses and is not empty.
fn assess(candidate: Candidate, response: &Response, now: Timestamp) -> Option<Ranked> {
    // Its URL is the one after redirects.
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

/// Candidates that redirect to the same URL are one result.
fn without_duplicates(found: Vec<Ranked>) -> Vec<Ranked> {
    let mut seen = std::collections::HashSet::new();
    let is_first = |ranked: &Ranked| seen.insert(ranked.candidate.url.clone());
    found.into_iter().filter(is_first).collect()
}
