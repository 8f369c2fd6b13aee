use std::time::Duration;
use tidings_polling::simulate::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let feeds: u32 = args.get(1).map_or(150, |a| a.parse().unwrap());
    let days: u32 = args.get(2).map_or(42, |a| a.parse().unwrap());
    let seeds: u64 = args.get(3).map_or(1, |a| a.parse().unwrap());
    let only = args.get(4).cloned().unwrap_or_default();
    for population in Population::ALL {
        if !only.is_empty() && !only.split(',').any(|o| o == population.name()) {
            continue;
        }
        for (label, dating) in [
            ("exact", Dating::Exact),
            ("day", Dating::Day),
            ("equal", Dating::Equal),
            ("none", Dating::None),
        ] {
            if args.get(5).is_none() && label != "exact" {
                continue;
            }
            for seed in 1..=seeds {
                let world = population.world(feeds, days, seed).dated(dating);
                let c = compare(
                    &world,
                    Contestants {
                        every: Duration::from_secs(900),
                        fixed: true,
                        doubling: true,
                        adaptive: true,
                    },
                    seed,
                    &mut || (),
                );
                for (i, row) in c.rows.iter().enumerate() {
                    let m = &row.measured;
                    let ratio = if i % 2 == 1 {
                        format!(
                            "{:.3} req {:.3} p90 {:.2}",
                            m.mean / c.rows[i - 1].measured.mean,
                            m.requests as f64 / c.rows[i - 1].measured.requests as f64,
                            m.p90 / c.rows[i - 1].measured.p90
                        )
                    } else {
                        String::new()
                    };
                    println!(
                        "{:10} {:6} {} {:10} {:7.2}/fd mean {:7.2} p50 {:6.2} p90 {:7.2} p99 {:8.2} lost {:5}/{} nonews {:.2} {}",
                        population.name(),
                        label,
                        seed,
                        row.policy,
                        m.requests_per_feed_day,
                        m.mean,
                        m.p50,
                        m.p90,
                        m.p99,
                        m.lost,
                        m.items,
                        m.without_news,
                        ratio
                    );
                }
            }
        }
    }
}
