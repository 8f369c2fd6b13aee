//! Plays one policy on a world, poll by poll, in simulated time. The policy sees
//! what a poller would see: the documents, never the truth behind them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use jiff::Timestamp;

use crate::policy::{Outcome, Policy, Poll, first_poll, next_poll};
use crate::price::{Budget, Demand, PriceControl};
use crate::simulate::measure::{Measured, Tally};
use crate::simulate::rng::Rng;
use crate::simulate::world::{Feed, World};
use crate::state::{Sighting, State};
use crate::{Hints, units};

/// How often the price is adjusted, in milliseconds.
const PRICE_INTERVAL: i64 = 600_000;

/// A policy, and what it may spend. The budget is held by the price, so it
/// binds the adaptive policy only; others spend what they spend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spending {
    pub policy: Policy,
    pub budget: Budget,
}

struct Player<'a> {
    feed: &'a Feed,
    state: State,
    /// Items that were out at the last poll.
    seen: usize,
    rng: Rng,
}

/// Plays `world` and measures. `progress` is called on each simulated day.
pub fn run(world: &World, spending: Spending, seed: u64, progress: &mut dyn FnMut()) -> Measured {
    let Spending { policy, budget } = spending;
    let mut players: Vec<Player<'_>> = world
        .feeds
        .iter()
        .map(|feed| Player {
            feed,
            state: State::default(),
            seen: 0,
            rng: Rng::of(seed, "poll", feed.id as u64),
        })
        .collect();
    let start = moment(world.start);
    let first = |(at, player): (usize, &Player<'_>)| {
        let due = first_poll(player.feed.id, policy, start);
        Reverse((due.at.as_millisecond(), at))
    };
    let mut queue: BinaryHeap<_> = players.iter().enumerate().map(first).collect();
    let mut tally = Tally::default();
    let mut demand: Demand = players.iter().map(|player| player.state.demand(1.0)).sum();
    let mut control = PriceControl::new(start);
    let mut price = control.price(demand, budget);
    let mut requests_since = 0;
    let mut next_day = world.start;

    while let Some(Reverse((now, at))) = queue.pop() {
        while next_day < now.min(world.end) {
            progress();
            next_day += (units::DAY * 1000.0) as i64;
        }
        if now >= control.at + PRICE_INTERVAL {
            control = control.next(moment(now), requests_since, budget);
            price = control.price(demand, budget);
            requests_since = 0;
        }
        requests_since += 1;

        let player = &mut players[at];
        let sighting = player.look(now, world, &mut tally);
        let poll = Poll {
            feed_id: player.feed.id,
            policy,
            outcome: Outcome::Read(sighting),
            hints: &Hints::default(),
            weight: 1.0,
            price,
            now: moment(now),
            random: player.rng.fraction(),
        };
        let (state, due) = next_poll(&player.state, &poll);
        demand.0 += state.demand(1.0).0 - player.state.demand(1.0).0;
        player.state = state;
        // One look after the end finds what is still waiting; then it is over.
        if now < world.end {
            queue.push(Reverse((due.at.as_millisecond().max(now + 1), at)));
        }
    }
    Measured::from(tally, world)
}

impl<'a> Player<'a> {
    /// Reads the document at `now` and counts what is judged.
    fn look(&mut self, now: i64, world: &World, tally: &mut Tally) -> Sighting<'a> {
        let feed = self.feed;
        let out = feed.count_by(now);
        let listed = out.saturating_sub(feed.window);
        let is_judged = |at: &&i64| (world.judged_from..world.end).contains(*at);
        let lost = feed.published[self.seen.min(listed)..listed].iter();
        tally.lost += lost.filter(is_judged).count() as u64;
        let new = self.seen.max(listed)..out;
        let found = feed.published[new.clone()].iter().filter(is_judged);
        tally
            .delays
            .extend(found.map(|at| (now - at) as f32 / 1000.0));
        if (world.judged_from..world.end).contains(&now) {
            tally.requests += 1;
            tally.without_news += u64::from(new.is_empty());
        }
        self.seen = out;
        Sighting {
            listed: &feed.dates[listed..out],
            new: &feed.dates[new],
        }
    }
}

fn moment(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
}
