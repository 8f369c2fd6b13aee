//! Clusters of near-duplicate documents.

use std::ops::Range;

use tidings_document::Sketch;
use tidings_store::{Completion, FrontierId, NewDocument, Outcome, StoredDocument, copy_store};

use crate::fixture::{Fixture, MINUTE, id, submission, target};

on_both_engines!(
    an_edited_copy_joins_the_first,
    another_story_is_its_own_cluster,
    a_fifth_in_common_is_another_story,
    near_duplicates_in_one_batch_find_each_other,
    a_new_text_leaves_the_cluster_and_its_keys,
    a_text_too_short_to_compare_is_no_longer_found,
    the_first_keeps_its_cluster_when_it_is_edited,
    forty_near_duplicates_are_one_cluster,
    common_phrases_form_no_cluster,
    a_cluster_is_read_page_by_page,
    clusters_are_copied_to_another_store,
);

const A: &str = "https://a.example/story";
const B: &str = "https://b.example/story";
const C: &str = "https://c.example/story";

/// The hash of a shingle.
fn hash(shingle: u64) -> u64 {
    let mixed = (shingle + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// The sketch of a text that consists of these shingles.
fn sketch_of(shingles: Range<u64>) -> Sketch {
    Sketch::of(shingles.map(hash))
}

fn outcome(url: &str, sketch: Option<Sketch>) -> Outcome {
    let text = format!("{url} {:?}", sketch.as_ref().map(Sketch::to_bytes));
    Outcome::Fetched {
        etag: None,
        last_modified: None,
        content_hash: None,
        document: Some(Box::new(NewDocument {
            key: target(url).key,
            source_id: 3,
            title: url.to_owned(),
            content_hash: Some(text.into_bytes()),
            sketch,
            body: "{}".to_owned(),
        })),
        again_in: None,
    }
}

/// Fetches a page, for the first time or again, and stores its document.
async fn write(t: &Fixture, url: &str, sketch: Option<Sketch>) -> StoredDocument {
    t.submit(&[url]).await;
    t.store.requeue(&[id(url)]).await.unwrap();
    t.advance(MINUTE);
    let claim = t.claim_one().await;
    assert!(t.complete(&claim, outcome(url, sketch)).await);
    read(t, url).await
}

async fn read(t: &Fixture, url: &str) -> StoredDocument {
    t.store.document(id(url)).await.unwrap().unwrap()
}

async fn nearest(t: &Fixture, shingles: Range<u64>) -> Option<FrontierId> {
    let nearest = t.store.nearest(&sketch_of(shingles)).await.unwrap();
    nearest.map(|nearest| nearest.id)
}

/// The cluster of a document, in the order of their ids.
async fn members(t: &Fixture, url: &str) -> Vec<FrontierId> {
    let cluster = read(t, url).await.cluster;
    let documents = t.store.cluster(cluster, None, 1_000).await.unwrap();
    documents.iter().map(|other| other.frontier_id).collect()
}

fn in_order<const N: usize>(urls: [&str; N]) -> Vec<FrontierId> {
    let mut ids: Vec<_> = urls.map(id).to_vec();
    ids.sort_unstable();
    ids
}

async fn an_edited_copy_joins_the_first(t: Fixture) {
    let first = write(&t, A, Some(sketch_of(0..300))).await;
    assert_eq!(first.cluster, id(A), "alone");
    let copy = write(&t, B, Some(sketch_of(100..400))).await;
    assert_eq!(copy.cluster, id(A));
    // Like the second, and hardly like the first.
    let copy_of_copy = write(&t, C, Some(sketch_of(220..520))).await;
    assert_eq!(copy_of_copy.cluster, id(A));
    for url in [A, B, C] {
        assert_eq!(members(&t, url).await, in_order([A, B, C]), "{url}");
    }
    let nearest = t.store.nearest(&sketch_of(0..280)).await.unwrap().unwrap();
    assert_eq!((nearest.id, nearest.cluster), (id(A), id(A)));
    assert!(
        nearest.similarity > 0.8 && nearest.similarity <= 1.0,
        "{nearest:?}"
    );
    let nearest = t
        .store
        .nearest(&sketch_of(225..520))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((nearest.id, nearest.cluster), (id(C), id(A)));
}

async fn another_story_is_its_own_cluster(t: Fixture) {
    write(&t, A, Some(sketch_of(0..300))).await;
    // A few phrases in common.
    let other = write(&t, B, Some(sketch_of(280..580))).await;
    assert_eq!(other.cluster, id(B));
    assert_eq!(members(&t, A).await, [id(A)]);
    assert_eq!(members(&t, B).await, [id(B)]);
    assert_eq!(nearest(&t, 1_000..1_300).await, None);
    let unknown = t.store.cluster(id(C), None, 10).await.unwrap();
    assert!(unknown.is_empty());
}

async fn a_fifth_in_common_is_another_story(t: Fixture) {
    let first = sketch_of(0..300);
    write(&t, A, Some(first.clone())).await;
    // Both are found by common keys; the similarity alone decides.
    let similar_by = |least: f32, most: f32| {
        let shares_key = |sketch: &Sketch| {
            let mut keys = sketch.lookup_keys().iter();
            keys.any(|key| first.keys().contains(key))
        };
        (0..300)
            .map(|start| sketch_of(start..start + 300))
            .find(|sketch| {
                let similarity = sketch.similarity(&first);
                shares_key(sketch) && least <= similarity && similarity < most
            })
            .unwrap()
    };
    let (below, above) = (similar_by(0.16, 0.25), similar_by(0.25, 0.3));
    assert_eq!(t.store.nearest(&below).await.unwrap(), None);
    let found = t.store.nearest(&above).await.unwrap();
    assert_eq!(found.map(|found| found.id), Some(id(A)));
    assert_eq!(write(&t, B, Some(below)).await.cluster, id(B));
}

async fn near_duplicates_in_one_batch_find_each_other(t: Fixture) {
    let pages = [(B, 0..300), (C, 1_000..1_300), (A, 40..340)];
    t.submit(&[A, B, C]).await;
    let claims = t.claim(3).await;
    let completions: Vec<_> = pages
        .iter()
        .map(|(url, shingles)| {
            let claim = claims.iter().find(|claim| claim.url.as_str() == *url);
            let sketch = sketch_of(shingles.clone());
            Completion::new(claim.unwrap().lease_token, outcome(url, Some(sketch)))
        })
        .collect();
    assert_eq!(t.store.complete(&completions).await.unwrap(), [true; 3]);
    assert_eq!(read(&t, A).await.cluster, id(B), "the first of the batch");
    assert_eq!(members(&t, B).await, in_order([A, B]));
    assert_eq!(members(&t, C).await, [id(C)]);
}

async fn a_new_text_leaves_the_cluster_and_its_keys(t: Fixture) {
    write(&t, A, Some(sketch_of(0..300))).await;
    write(&t, B, Some(sketch_of(40..340))).await;
    write(&t, C, Some(sketch_of(1_000..1_300))).await;
    assert_eq!(nearest(&t, 60..360).await, Some(id(B)));

    let moved = write(&t, B, Some(sketch_of(1_040..1_340))).await;
    assert_eq!((moved.revision, moved.cluster), (2, id(C)));
    assert_eq!(members(&t, A).await, [id(A)]);
    assert_eq!(members(&t, C).await, in_order([B, C]));
    assert_eq!(
        nearest(&t, 60..360).await,
        Some(id(A)),
        "the old keys are gone"
    );
    assert_eq!(nearest(&t, 1_060..1_360).await, Some(id(B)));

    let alone = write(&t, B, Some(sketch_of(2_000..2_300))).await;
    assert_eq!(alone.cluster, id(B));
    assert_eq!(members(&t, C).await, [id(C)]);
}

async fn a_text_too_short_to_compare_is_no_longer_found(t: Fixture) {
    write(&t, A, Some(sketch_of(0..300))).await;
    let gone = write(&t, A, None).await;
    assert_eq!((gone.revision, gone.cluster), (2, id(A)));
    assert_eq!(nearest(&t, 0..300).await, None);
    assert_eq!(write(&t, B, Some(sketch_of(0..300))).await.cluster, id(B));
}

async fn the_first_keeps_its_cluster_when_it_is_edited(t: Fixture) {
    write(&t, A, Some(sketch_of(0..300))).await;
    write(&t, B, Some(sketch_of(40..340))).await;
    let edited = write(&t, A, Some(sketch_of(20..320))).await;
    assert_eq!((edited.revision, edited.cluster), (2, id(A)));
    assert_eq!(members(&t, B).await, in_order([A, B]));
}

async fn forty_near_duplicates_are_one_cluster(t: Fixture) {
    let urls: Vec<String> = (0..40).map(|n| format!("https://h{n}.example/")).collect();
    for (n, url) in (0..).zip(&urls) {
        // Nearly the same: each has five shingles of its own.
        let own = 10_000 + 5 * n..10_000 + 5 * n + 5;
        let sketch = Sketch::of((0..300).chain(own).map(hash));
        let document = write(&t, url, Some(sketch)).await;
        assert_eq!(document.cluster, id(&urls[0]), "{url}");
    }
    assert_eq!(members(&t, &urls[39]).await.len(), 40);
}

async fn common_phrases_form_no_cluster(t: Fixture) {
    // The smallest hashes possible: four of six keys are the same for all.
    let common = 0..4;
    let story = |n: u64| {
        let own = 1_000 * n..1_000 * n + 300;
        Sketch::of(common.clone().chain(own.map(hash)))
    };
    let urls: Vec<String> = (0..40).map(|n| format!("https://h{n}.example/")).collect();
    for (n, url) in (1..).zip(&urls) {
        let document = write(&t, url, Some(story(n))).await;
        assert_eq!(document.cluster, id(url), "{url}");
    }
    // Those added when the common keys were full are found by their own keys.
    for (n, url) in [(1, &urls[0]), (39, &urls[38]), (40, &urls[39])] {
        let nearest = t.store.nearest(&story(n)).await.unwrap();
        assert_eq!(nearest.map(|nearest| nearest.id), Some(id(url)));
    }
    assert_eq!(t.store.nearest(&story(99)).await.unwrap(), None);
}

async fn a_cluster_is_read_page_by_page(t: Fixture) {
    let urls: Vec<String> = (0..7).map(|n| format!("https://h{n}.example/")).collect();
    for url in &urls {
        write(&t, url, Some(sketch_of(0..300))).await;
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = t.store.cluster(id(&urls[0]), after, 3).await.unwrap();
        seen.extend(page.iter().map(|document| document.frontier_id));
        let Some(last) = page.last() else { break };
        after = Some(last.frontier_id);
    }
    let mut expected: Vec<_> = urls.iter().map(|url| id(url)).collect();
    expected.sort_unstable();
    assert_eq!(seen, expected);
}

async fn clusters_are_copied_to_another_store(t: Fixture) {
    write(&t, A, Some(sketch_of(0..300))).await;
    write(&t, B, Some(sketch_of(40..340))).await;
    for other in [Fixture::sqlite().await, Fixture::postgres().await] {
        copy_store(&t.store, &other.store, |_| {}).await.unwrap();
        assert_eq!(members(&other, A).await, in_order([A, B]));
        assert_eq!(nearest(&other, 60..360).await, Some(id(B)));
        other.store.submit(&[submission(C)]).await.unwrap();
        let copy = write(&other, C, Some(sketch_of(10..310))).await;
        assert_eq!(copy.cluster, id(A));
    }
}
