//! The request budget: the price of a request in the polling policy, which all
//! machines share through the store, and what the budget was spent on.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tidings_polling::{Budget, Demand, Price, PriceControl};
use tidings_store::{BudgetUse, FeedDemand, Moment, Result, SharedValue, Store};

/// How long a price holds before it is updated.
const PRICE_TTL_MS: i64 = 60_000;

/// Without a configured budget: as many requests as a poll of each feed at this
/// interval.
const DEFAULT_INTERVAL: std::time::Duration = std::time::Duration::from_secs(900);

const KEY: &str = "poll_price";

const DAY_MS: f64 = 86_400_000.0;

/// The request budget of all feeds that are polled by the adaptive policy, what they use
/// of it, and how late items are found for it. Use and delay are means over about a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BudgetStatus {
    pub requests_per_day: f64,
    /// Whether `poll.requests_per_day` is set.
    pub is_configured: bool,
    /// Feeds and sitemaps that share it.
    pub feeds: u64,
    pub used_per_day: f64,
    /// New items per day whose publication time is known.
    pub dated_items_per_day: f64,
    /// Mean delay from publication to discovery of those items.
    pub mean_delay_seconds: f64,
}

/// What is shared: the control of the price, and the status up to its time.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct SharedBudget {
    #[serde(flatten)]
    control: PriceControl,
    #[serde(default)]
    status: BudgetStatus,
    /// Items and delays that are in the status.
    #[serde(default)]
    items: i64,
    #[serde(default)]
    delay_ms: i64,
}

/// The status of the request budget, if anything was polled within it.
pub async fn budget_status(store: &Store) -> Result<Option<BudgetStatus>> {
    let shared = store.shared_value(KEY).await?;
    let shared = shared.and_then(|mark| serde_json::from_str::<SharedBudget>(&mark.value).ok());
    let status = shared.map(|shared| shared.status);
    Ok(status.filter(|status| status.feeds > 0))
}

#[derive(Debug)]
pub(super) struct RequestBudget {
    requests_per_day: Option<f64>,
    last: Mutex<Option<(Moment, Price)>>,
}

impl RequestBudget {
    pub(super) fn new(requests_per_day: Option<f64>) -> Self {
        Self {
            requests_per_day,
            last: Mutex::default(),
        }
    }

    /// The current price.
    pub(super) async fn price(&self, store: &Store, now: Moment) -> Result<Price> {
        if let Some((at, price)) = *self.last.lock().unwrap_or_else(PoisonError::into_inner)
            && now.0 - at.0 < PRICE_TTL_MS
        {
            return Ok(price);
        }
        let price = self.update(store, now).await?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, price));
        Ok(price)
    }

    /// One machine updates the price control; the others read it.
    async fn update(&self, store: &Store, now: Moment) -> Result<Price> {
        let feeds = store.feed_demand().await?;
        let budget = match self.requests_per_day {
            Some(requests_per_day) => Budget { requests_per_day },
            None => Budget::like_fixed(feeds.within_budget.max(1), DEFAULT_INTERVAL),
        };
        let (seen, used) = (store.shared_value(KEY).await?, store.budget_use().await?);
        let known = seen
            .as_ref()
            .and_then(|mark| Some((serde_json::from_str(&mark.value).ok()?, mark.n)));
        let shared = self.next(known, used, feeds, budget, now);
        let is_due = seen
            .as_ref()
            .is_none_or(|mark| now.0 - mark.at.0 >= PRICE_TTL_MS);
        if is_due {
            let mark = SharedValue {
                value: serde_json::to_string(&shared).unwrap_or_default(),
                n: used.polls,
                at: now,
            };
            store
                .replace_shared_value(KEY, seen.as_ref(), &mark)
                .await?;
        }
        let demand = Demand(feeds.demand);
        Ok(shared.control.price(feeds.within_budget, demand, budget))
    }

    /// What is shared next, from what was and its number of polls.
    fn next(
        &self,
        known: Option<(SharedBudget, i64)>,
        used: BudgetUse,
        feeds: FeedDemand,
        budget: Budget,
        now: Moment,
    ) -> SharedBudget {
        let time = Timestamp::from_millisecond(now.0).unwrap_or_default();
        let mut status = BudgetStatus {
            requests_per_day: budget.requests_per_day,
            is_configured: self.requests_per_day.is_some(),
            feeds: feeds.within_budget,
            ..BudgetStatus::default()
        };
        let mut control = PriceControl::new(time);
        if let Some((before, polls)) = known {
            let requests = (used.polls - polls).max(0);
            let elapsed = (now.0 - before.control.at).max(1) as f64 / DAY_MS;
            control = before.control.next(time, requests.unsigned_abs(), budget);
            status.add(
                &before.status,
                elapsed,
                requests,
                (used.items - before.items).max(0),
                (used.delay_ms - before.delay_ms).max(0),
            );
        }
        SharedBudget {
            control,
            status,
            items: used.items,
            delay_ms: used.delay_ms,
        }
    }
}

impl BudgetStatus {
    /// The means of `before`, moved on by a part of a day in which this was counted.
    fn add(&mut self, before: &Self, elapsed: f64, requests: i64, items: i64, delay_ms: i64) {
        let keep = match before.used_per_day > 0.0 {
            true => (-elapsed).exp(),
            false => 0.0,
        };
        let mean = |before: f64, counted: f64| before * keep + counted / elapsed * (1.0 - keep);
        self.used_per_day = mean(before.used_per_day, requests as f64);
        self.dated_items_per_day = mean(before.dated_items_per_day, items as f64);
        let waited = before.dated_items_per_day * before.mean_delay_seconds;
        let waited = mean(waited, delay_ms as f64 / 1000.0);
        self.mean_delay_seconds = match self.dated_items_per_day > 0.0 {
            true => waited / self.dated_items_per_day,
            false => 0.0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    /// Polls one minute after the other, with an item of this delay every ten.
    fn spend(budget: &RequestBudget, minutes: i64, per_minute: i64, delay_ms: i64) -> SharedBudget {
        let feeds = FeedDemand {
            feeds: 10,
            within_budget: 10,
            demand: 0.1,
        };
        let allowed = Budget {
            requests_per_day: 1440.0,
        };
        let mut used = BudgetUse::default();
        let mut shared = budget.next(None, used, feeds, allowed, Moment(0));
        for minute in 1..=minutes {
            let known = Some((shared, used.polls));
            used.polls += per_minute;
            if minute % 10 == 0 {
                used.items += 1;
                used.delay_ms += delay_ms;
            }
            shared = budget.next(known, used, feeds, allowed, Moment(minute * MINUTE));
        }
        shared
    }

    #[test]
    fn use_and_delay_are_those_of_the_last_day() {
        let budget = RequestBudget::new(Some(1440.0));
        let status = spend(&budget, 3 * 1440, 2, 120_000).status;
        assert!(status.is_configured && status.feeds == 10);
        assert!((status.used_per_day - 2880.0).abs() < 1.0, "{status:?}");
        assert!(
            (status.dated_items_per_day - 144.0).abs() < 15.0,
            "{status:?}"
        );
        assert!(
            (status.mean_delay_seconds - 120.0).abs() < 1e-6,
            "{status:?}"
        );
    }

    #[test]
    fn twice_the_budget_is_made_dearer_and_survives_being_stored() {
        let budget = RequestBudget::new(None);
        let shared = spend(&budget, 600, 2, 1000);
        assert!(shared.control.correction > 2.0, "{shared:?}");
        let json = serde_json::to_string(&shared).unwrap();
        let read: SharedBudget = serde_json::from_str(&json).unwrap();
        assert_eq!((read.control, read.status), (shared.control, shared.status));
        // One that an older version has stored.
        let old: SharedBudget = serde_json::from_str(r#"{"correction":1.5,"at":7}"#).unwrap();
        assert_eq!((old.control.correction, old.control.at), (1.5, 7));
    }
}
