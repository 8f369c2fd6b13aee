//! The request budget: the price of a request in the polling policy, which all
//! machines share through the store.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use tidings_polling::{Budget, Demand, Price, PriceControl};
use tidings_store::{Moment, Result, SharedValue, Store};

/// How long a price holds before it is updated.
const PRICE_TTL_MS: i64 = 60_000;

/// Without a configured budget: as many requests as a poll of each feed at this
/// interval.
const DEFAULT_INTERVAL: std::time::Duration = std::time::Duration::from_secs(900);

const KEY: &str = "poll_price";

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
        let (feeds, demand) = store.feed_demand().await?;
        let budget = match self.requests_per_day {
            Some(requests_per_day) => Budget { requests_per_day },
            None => Budget::like_fixed(feeds.max(1), DEFAULT_INTERVAL),
        };
        let time = Timestamp::from_millisecond(now.0).unwrap_or_default();
        let (seen, polls) = (store.shared_value(KEY).await?, store.polls().await?);
        let control = match &seen {
            None => PriceControl::new(time),
            Some(mark) => {
                let known = serde_json::from_str(&mark.value);
                let known = known.unwrap_or_else(|_| PriceControl::new(time));
                known.next(time, (polls - mark.n).max(0).unsigned_abs(), budget)
            }
        };
        let is_due = seen
            .as_ref()
            .is_none_or(|mark| now.0 - mark.at.0 >= PRICE_TTL_MS);
        if is_due {
            let mark = SharedValue {
                value: serde_json::to_string(&control).unwrap_or_default(),
                n: polls,
                at: now,
            };
            store
                .replace_shared_value(KEY, seen.as_ref(), &mark)
                .await?;
        }
        Ok(control.price(Demand(demand), budget))
    }
}
