//! Names that do not exist, time out, have too many addresses or alias themselves.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use tidings_net::{Client, NetOptions};
use tidings_sim::{Act, DnsAnswer, DnsServer};

use crate::{get, options, raw};

pub(crate) fn client_with_dns(dns: &DnsServer) -> Client {
    Client::new(NetOptions {
        dns: vec![dns.address()],
        ..options()
    })
    .unwrap()
}

#[tokio::test]
async fn every_dns_error_has_its_own_code() {
    let peer = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let dns = DnsServer::start(move |name, _| match name {
        "good.example" => DnsAnswer::Addresses(vec![peer]),
        "many.example" => DnsAnswer::Addresses(vec![peer; 500]),
        "alias.example" => DnsAnswer::Alias("good.example".to_owned()),
        "circle.example" => DnsAnswer::Alias("circle.example".to_owned()),
        "broken.example" => DnsAnswer::ServerFailure,
        "empty.example" => DnsAnswer::Addresses(Vec::new()),
        "late.example" => DnsAnswer::Overdue(Duration::from_secs(30), vec![peer]),
        _ => DnsAnswer::NoSuchName,
    })
    .await
    .unwrap();
    let server = raw(|_| Act::answer("200 OK", b"hello")).await;
    let port = server.address().port();
    let client = client_with_dns(&dns);
    for name in ["good", "many", "alias"] {
        let response = get(&client, &format!("http://{name}.example:{port}/")).await;
        assert_eq!(response.map(|response| response.status), Ok(200), "{name}");
    }
    let rows = [
        ("missing", "no_such_name"),
        ("empty", "no_such_name"),
        ("broken", "dns"),
        ("late", "dns"),
    ];
    for (name, code) in rows {
        let failure = get(&client, &format!("http://{name}.example:{port}/"))
            .await
            .unwrap_err();
        assert_eq!(failure.code(), code, "{name}: {failure}");
    }
    let circle = get(&client, &format!("http://circle.example:{port}/"))
        .await
        .unwrap_err();
    assert_eq!(circle.class(), tidings_net::Class::Network, "{circle}");
}
