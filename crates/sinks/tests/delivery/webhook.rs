//! Webhooks: signatures, and the receivers of row S10: failing, slow, endless,
//! redirecting.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;
use tidings_sim::WebhookFault as Fault;
use tidings_sim::{FakeWebhook, WebhookCall};
use tidings_sinks::{Sink, Verdict, signature};

use crate::fixture::{
    deliver, document, documents, error_of, is_dead, is_retry, now, sink, until_done,
};

async fn fake() -> FakeWebhook {
    FakeWebhook::start().await.unwrap()
}

fn to(fake: &FakeWebhook) -> Box<dyn Sink> {
    sink(&format!(
        "kind = \"webhook\"\nurl = \"{}\"\nsecret_env = \"KEY\"\ntimeout_seconds = 1",
        fake.url()
    ))
}

fn ids(calls: &[WebhookCall]) -> Vec<&str> {
    calls.iter().map(|call| call.id.as_str()).collect()
}

#[tokio::test]
async fn each_document_is_one_signed_request_in_order() {
    let fake = fake().await;
    let batch = vec![document(2, 1), document(1, 4), document(3, 1)];
    assert_eq!(
        deliver(&*to(&fake), &batch).await,
        vec![Verdict::Accepted; 3]
    );
    let calls = fake.calls();
    for (call, document) in calls.iter().zip(&batch) {
        assert_eq!(call.event, "document");
        assert_eq!(call.id, format!("{}.{}", document.id, document.revision));
        assert_eq!(call.timestamp, now().as_second().to_string());
        let expected = signature("a-very-secret-key", now().as_second(), &call.body);
        assert_eq!(call.signature, expected);
        assert_ne!(
            expected,
            signature("a-very-secret-key", now().as_second() + 1, &call.body)
        );
        let body: Value = serde_json::from_slice(&call.body).unwrap();
        assert_eq!(body["title"], document.title.as_str());
        assert_eq!(body["body_text"], document.body_text.as_str());
    }
    assert!(to(&fake).check(now()).await.is_ok());
    assert_eq!(fake.calls().last().unwrap().event, "ping");
}

#[tokio::test]
async fn every_error_response_has_its_verdict() {
    type Is = fn(&Verdict) -> bool;
    let accepted: Is = |verdict| *verdict == Verdict::Accepted;
    let rows: [(Fault, Is, bool); 13] = [
        (Fault::Status(204), accepted, true),
        (Fault::Status(400), is_dead, true),
        (Fault::Status(413), is_dead, true),
        (Fault::Status(422), is_dead, true),
        (Fault::Status(401), is_retry, true),
        (Fault::Status(404), is_retry, true),
        (Fault::Status(410), is_retry, true),
        (Fault::Status(500), is_retry, true),
        (Fault::Status(503), is_retry, false),
        (Fault::TooManyRequests(9), is_retry, false),
        (
            Fault::Redirect("http://127.0.0.1:1/steal".into()),
            is_retry,
            true,
        ),
        (Fault::Endless, accepted, true),
        (Fault::Silence, is_retry, false),
    ];
    for (fault, expected, continues) in rows {
        let fake = fake().await;
        fake.fail_next([fault.clone()]);
        let verdicts = deliver(&*to(&fake), &documents(0..3)).await;
        assert!(expected(&verdicts[0]), "{fault:?}: {:?}", verdicts[0]);
        // An overloaded or silent receiver does not get the others.
        let others = if continues { accepted } else { is_retry };
        assert!(verdicts[1..].iter().all(others), "{fault:?}: {verdicts:?}");
        match fault {
            Fault::TooManyRequests(_) => {
                let wait = Some(Duration::from_secs(9));
                assert!(matches!(&verdicts[0], Verdict::Retry { after, .. } if *after == wait));
            }
            Fault::Redirect(_) => assert!(error_of(&verdicts[0]).contains("not followed")),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_receiver_that_was_down_gets_every_document_later() {
    let fake = fake().await;
    let sink = to(&fake);
    fake.set_down(true);
    assert!(
        deliver(&*sink, &documents(0..30))
            .await
            .iter()
            .all(is_retry)
    );
    assert!(!sink.check(now()).await.is_ok());
    fake.set_down(false);
    assert_eq!(until_done(&*sink, documents(0..30)).await.0, []);
    assert_eq!(fake.calls().len(), 30);
    for text in [
        format!("{sink:?}"),
        format!("{:?}", sink.check(now()).await),
    ] {
        assert!(!text.contains("very-secret"), "{text}");
    }
}

fn any_fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::Status(500)),
        Just(Fault::Status(404)),
        Just(Fault::TooManyRequests(1)),
        Just(Fault::Redirect("http://127.0.0.1:1/".into())),
        Just(Fault::ReplyLost),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// At least once; a redelivery has the same id and the same body.
    #[test]
    fn any_faults_lose_nothing(faults in prop::collection::vec(any_fault(), 0..20)) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let fake = fake().await;
            fake.fail_next(faults);
            assert_eq!(until_done(&*to(&fake), documents(0..25)).await.0, []);
            let calls = fake.calls();
            let mut once: BTreeMap<&str, &[u8]> = BTreeMap::new();
            for call in &calls {
                let body = once.entry(&call.id).or_insert(&call.body);
                assert_eq!(*body, call.body);
            }
            assert_eq!(once.len(), 25, "{:?}", ids(&calls));
        });
    }
}
