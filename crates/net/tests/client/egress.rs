//! The egress guard: every range at its edges, every spelling of an address, and
//! every redirect or name that leads to one. A canary listens on a denied address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tidings_net::{Client, DenyReason, Egress, Failure, NetOptions};
use tidings_sim::{Act, DnsAnswer, DnsServer, LOOPBACK_SPELLINGS, RawServer};

use crate::names::client_with_dns;
use crate::{client, get, home, options, path, raw};

fn check(address: &str) -> Result<(), DenyReason> {
    let ip: IpAddr = address.parse().unwrap();
    let checked = Egress::default().check(SocketAddr::new(ip, 443));
    checked.map_err(|denied| denied.reason)
}

#[test]
fn ranges_are_closed_from_their_first_address_to_their_last() {
    // Just before, first, last, just after. `-` where the neighbour is closed
    // by another row or does not exist.
    let rows = [
        ["-", "0.0.0.0", "0.255.255.255", "1.0.0.0"],
        ["9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"],
        [
            "100.63.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "100.128.0.0",
        ],
        [
            "126.255.255.255",
            "127.0.0.0",
            "127.255.255.255",
            "128.0.0.0",
        ],
        [
            "169.253.255.255",
            "169.254.0.0",
            "169.254.255.255",
            "169.255.0.0",
        ],
        [
            "172.15.255.255",
            "172.16.0.0",
            "172.31.255.255",
            "172.32.0.0",
        ],
        ["191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"],
        ["192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"],
        [
            "192.88.98.255",
            "192.88.99.0",
            "192.88.99.255",
            "192.88.100.0",
        ],
        [
            "192.167.255.255",
            "192.168.0.0",
            "192.168.255.255",
            "192.169.0.0",
        ],
        [
            "198.17.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.20.0.0",
        ],
        [
            "198.51.99.255",
            "198.51.100.0",
            "198.51.100.255",
            "198.51.101.0",
        ],
        [
            "203.0.112.255",
            "203.0.113.0",
            "203.0.113.255",
            "203.0.114.0",
        ],
        ["223.255.255.255", "224.0.0.0", "239.255.255.255", "-"],
        ["-", "240.0.0.0", "255.255.255.255", "-"],
        // All that is not 2000::/3, by its edges and by name.
        ["-", "::", "::", "-"],
        ["-", "::1", "::1", "-"],
        ["-", "64:ff9b::", "64:ff9b::ffff:ffff", "-"],
        [
            "-",
            "64:ff9b:1::",
            "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
            "-",
        ],
        ["-", "100::", "100::ffff:ffff:ffff:ffff", "-"],
        [
            "-",
            "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2000::",
        ],
        [
            "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001::",
            "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:200::",
        ],
        [
            "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:db8::",
            "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:db9::",
        ],
        [
            "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2002::",
            "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2003::",
        ],
        [
            "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "3fff::",
            "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
            "3fff:1000::",
        ],
        [
            "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "4000::",
            "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "-",
        ],
        [
            "-",
            "fc00::",
            "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "-",
        ],
        [
            "-",
            "fe80::",
            "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "-",
        ],
        [
            "-",
            "fec0::",
            "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "-",
        ],
        [
            "-",
            "ff00::",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "-",
        ],
        // Where the metadata of clouds is.
        ["-", "169.254.169.254", "169.254.169.254", "-"],
        ["-", "fd00:ec2::254", "fd00:ec2::254", "-"],
        ["-", "100.100.100.200", "100.100.100.200", "-"],
        ["-", "192.0.0.192", "192.0.0.192", "-"],
    ];
    for [before, first, last, after] in rows {
        for open in [before, after]
            .into_iter()
            .filter(|address| *address != "-")
        {
            assert_eq!(check(open), Ok(()), "{open} is global");
        }
        for closed in [first, last] {
            assert!(
                matches!(check(closed), Err(DenyReason::Range(_))),
                "{closed} is closed"
            );
        }
    }
}

#[test]
fn embedded_addresses_are_checked() {
    let inside = |prefix: [u16; 6], v4: &str| {
        let [a, b, c, d] = v4.parse::<Ipv4Addr>().unwrap().octets();
        let [p, q, r, s, t, u] = prefix;
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Ipv6Addr::new(p, q, r, s, t, u, high, low).to_string()
    };
    for v4 in [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "192.168.1.1",
        "0.0.0.5",
    ] {
        for (name, prefix) in [
            ("mapped", [0, 0, 0, 0, 0, 0xffff]),
            ("compatible", [0; 6]),
            ("translated", [0, 0, 0, 0, 0xffff, 0]),
            ("NAT64", [0x64, 0xff9b, 0, 0, 0, 0]),
            ("local NAT64", [0x64, 0xff9b, 1, 0, 0, 0]),
            ("Teredo", [0x2001, 0, 0, 0, 0, 0]),
        ] {
            assert!(check(&inside(prefix, v4)).is_err(), "{name} {v4}");
        }
        let [a, b, c, d] = v4.parse::<Ipv4Addr>().unwrap().octets();
        let six_to_four = Ipv6Addr::new(
            0x2002,
            u16::from_be_bytes([a, b]),
            u16::from_be_bytes([c, d]),
            0,
            0,
            0,
            0,
            1,
        );
        assert!(check(&six_to_four.to_string()).is_err(), "6to4 {v4}");
    }
    // A public address embedded in IPv6 is the public address.
    assert_eq!(check("::ffff:8.8.8.8"), Ok(()));
}

#[test]
fn ports_of_other_services_are_closed() {
    let ip: IpAddr = "8.8.8.8".parse().unwrap();
    for port in [80, 443, 8000, 8080, 8999] {
        assert!(
            Egress::default().check(SocketAddr::new(ip, port)).is_ok(),
            "{port}"
        );
    }
    for port in [
        0, 1, 22, 25, 79, 81, 442, 444, 5432, 6379, 7999, 9000, 9200, 11211, 65535,
    ] {
        let denied = Egress::default()
            .check(SocketAddr::new(ip, port))
            .unwrap_err();
        assert_eq!(denied.reason, DenyReason::Port, "{port}");
    }
}

#[test]
fn an_operator_opens_exactly_what_is_named() {
    let egress = Egress {
        allow: vec!["10.1.2.0/24".parse().unwrap()],
        ..Egress::default()
    };
    let check = |ip: &str| {
        egress
            .check(SocketAddr::new(ip.parse().unwrap(), 80))
            .is_ok()
    };
    for open in ["10.1.2.0", "10.1.2.255", "::ffff:10.1.2.7"] {
        assert!(check(open), "{open}");
    }
    for closed in [
        "10.1.1.255",
        "10.1.3.0",
        "127.0.0.1",
        "::ffff:10.1.3.0",
        "192.168.0.1",
    ] {
        assert!(!check(closed), "{closed}");
    }
}

/// Two canaries with one port, on the IPv4 and the IPv6 loopback address.
async fn canaries() -> (RawServer, RawServer) {
    loop {
        let v4 = RawServer::start("127.0.0.1:0".parse().unwrap(), |_| {
            Act::answer("200 OK", b"!")
        })
        .await
        .unwrap();
        let same_port = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), v4.address().port());
        // Another process may have the port there; then both move.
        if let Ok(v6) = RawServer::start(same_port, |_| Act::answer("200 OK", b"!")).await {
            return (v4, v6);
        }
    }
}

fn assert_denied(response: Result<tidings_net::Response, Failure>, how: &str) {
    match response {
        Err(Failure::Egress(denied)) => {
            assert!(
                matches!(denied.reason, DenyReason::Range(_)),
                "{how}: {denied}"
            );
        }
        other => panic!("{how}: {:?}", other.map(|response| response.status)),
    }
}

#[tokio::test]
async fn no_way_leads_to_the_canary() {
    let (v4, v6) = canaries().await;
    let port = v4.address().port();
    let client = client();

    for host in LOOPBACK_SPELLINGS {
        assert_denied(get(&client, &format!("http://{host}:{port}/")).await, host);
    }

    // From a server that may be reached, by every kind of redirect.
    let ways = ["301", "302", "303", "307", "308", "refresh"];
    let server = raw(move |head| {
        let way = path(head).trim_start_matches('/').to_owned();
        let target = format!("http://127.0.0.1:{port}/");
        if way == "refresh" {
            let page = format!("<meta http-equiv=refresh content='0; url={target}'>");
            return Act::answer("200 OK\r\nContent-Type: text/html", page.as_bytes());
        }
        Act::answer(&format!("{way} There\r\nLocation: {target}"), b"")
    })
    .await;
    for way in ways {
        let address = format!("{}{way}", home(server.address()));
        assert_denied(get(&client, &address).await, way);
    }

    assert_eq!(
        (v4.connections(), v6.connections()),
        (0, 0),
        "the canary was visited"
    );
}

#[tokio::test]
async fn names_can_not_lead_to_the_canary() {
    let good = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    // On the port of the canary, so that only the address differs. Another test
    // may have that port there; then all move.
    let (v4, v6, server) = loop {
        let (v4, v6) = canaries().await;
        let same_port = SocketAddr::new(good, v4.address().port());
        let response = |_: &str| Act::answer("200 OK\r\nConnection: close", b"good");
        if let Ok(server) = RawServer::start(same_port, response).await {
            break (v4, v6, server);
        }
    };
    let port = v4.address().port();
    let bad = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let bad_v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let dns = DnsServer::start(move |name, nth| match name {
        // Good for the first query, the canary ever after.
        "rebinding.example" if nth == 1 => DnsAnswer::Addresses(vec![good]),
        "rebinding.example" | "inside.example" => DnsAnswer::Addresses(vec![bad]),
        "mixed.example" => DnsAnswer::Addresses(vec![good, bad]),
        "mixed-v6.example" => DnsAnswer::Addresses(vec![good, bad_v6]),
        "alias.example" => DnsAnswer::Alias("inside.example".to_owned()),
        _ => DnsAnswer::NoSuchName,
    })
    .await
    .unwrap();
    let client = client_with_dns(&dns);
    let first = get(&client, &format!("http://rebinding.example:{port}/"))
        .await
        .unwrap();
    assert_eq!(&first.body[..], b"good");
    for name in ["rebinding", "inside", "mixed", "mixed-v6", "alias"] {
        assert_denied(
            get(&client, &format!("http://{name}.example:{port}/")).await,
            name,
        );
    }
    assert_eq!(server.connections(), 1);
    assert_eq!(
        (v4.connections(), v6.connections()),
        (0, 0),
        "the canary was visited"
    );
}

#[tokio::test]
async fn proxies_of_the_environment_are_ignored() {
    let (canary, _) = canaries().await;
    let server = raw(|_| Act::answer("200 OK", b"direct")).await;
    let proxy = format!("http://{}", canary.address());
    let address = home(server.address());
    // In a child, so that no other test sees the variables.
    let child = tokio::task::spawn_blocking(move || {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "egress::fetch_for_a_parent", "--nocapture"])
            .env("HTTP_PROXY", &proxy)
            .env("http_proxy", &proxy)
            .env("ALL_PROXY", &proxy)
            .env("TIDINGS_TEST_FETCH", address)
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    assert!(
        child.status.success(),
        "{}",
        String::from_utf8_lossy(&child.stdout)
    );
    assert_eq!((server.connections(), canary.connections()), (1, 0));
}

/// The body of the process that the test above starts; by itself it does nothing.
#[tokio::test]
async fn fetch_for_a_parent() {
    if let Ok(address) = std::env::var("TIDINGS_TEST_FETCH") {
        let response = get(&client(), &address).await.unwrap();
        assert_eq!(&response.body[..], b"direct");
    }
}

#[tokio::test]
async fn a_refusal_names_the_setting_that_allows_it() {
    let closed = Client::new(NetOptions::default()).unwrap();
    let denied = get(&closed, "http://127.0.0.1/").await.unwrap_err();
    let absent = get(&Client::new(options()).unwrap(), "http://127.0.0.2:1/")
        .await
        .unwrap_err();
    assert_eq!((denied.code(), absent.code()), ("egress", "connect"));
    assert_eq!(
        denied.to_string(),
        "127.0.0.1:80 may not be reached: it is loopback (127.0.0.0/8); egress.allow opens a range by name"
    );
}
