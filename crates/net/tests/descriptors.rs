//! When this process has no file descriptor left, no host, name server or proxy is
//! blamed. The part that lacks descriptors runs in a process of its own, as the
//! limit holds for a whole process.

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::process::Command;

use tidings_net::{
    Class, Client, Egress, Failure, NetOptions, Proxy, Purpose, Redirects, Request, Response,
};
use tidings_sim::{Act, RawServer};
use tidings_url::FetchUrl;

/// Set in the process that runs with few descriptors.
const LIMITED: &str = "TIDINGS_TEST_FEW_DESCRIPTORS";

#[test]
fn lack_of_descriptors_is_an_internal_failure() {
    if std::env::var_os(LIMITED).is_some() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(without_descriptors());
    }
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "lack_of_descriptors_is_an_internal_failure"])
        .arg("--nocapture")
        .env(LIMITED, "1")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

async fn without_descriptors() {
    let server = RawServer::start("127.0.0.2:0".parse().unwrap(), |_| {
        Act::answer("200 OK\r\nContent-Type: text/html", b"<p>here")
    })
    .await
    .unwrap();
    let options = NetOptions {
        egress: Egress {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
            ports: vec![1..=65535],
        },
        ..NetOptions::default()
    };
    let direct = Client::new(options.clone()).unwrap();
    let by_name = Client::new(NetOptions {
        dns: vec!["127.0.0.3:5353".parse().unwrap()],
        ..options.clone()
    })
    .unwrap();
    let bound = Client::new(NetOptions {
        addresses: vec!["127.0.0.1".parse().unwrap()],
        ..options.clone()
    })
    .unwrap();
    let proxied = Client::new(NetOptions {
        proxies: vec![Proxy::parse("socks5://127.0.0.4:1080").unwrap()],
        ..options
    })
    .unwrap();
    let page = format!("http://{}/", server.address());

    let mut held = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        held.push(file);
    }
    let rows = [
        (&direct, page.as_str()),
        (&by_name, "http://a.example/"),
        (&bound, page.as_str()),
        (&proxied, page.as_str()),
    ];
    for (at, (client, address)) in rows.into_iter().enumerate() {
        let failure = get(client, address).await.unwrap_err();
        let found = (failure.code(), failure.class());
        assert_eq!(found, ("no_descriptor", Class::Internal), "{at}: {failure}");
    }

    // The route was not put into cooldown.
    drop(held);
    for client in [&direct, &bound] {
        assert_eq!(get(client, &page).await.unwrap().status, 200);
    }
}

async fn get(client: &Client, address: &str) -> Result<Response, Failure> {
    let url = FetchUrl::parse(address).unwrap();
    let request = Request::get(url, Purpose::Page);
    client.fetch(request, Redirects::Report).await
}
