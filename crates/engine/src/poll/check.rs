//! A check of one source without side effects: does its service accept the key,
//! and what would a poll bring? Writes nothing.

use std::time::Duration;

use serde::Serialize;
use tidings_adapters::PullContext;
use tidings_store::Source;

use super::feed_poll::timestamp;
use super::{CollectError, Poller, SeenItem};
use crate::sources::SourceSettings;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The result of a check.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SourceCheck {
    pub name: String,
    pub kind: String,
    /// The status of its service, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    pub items_seen: usize,
    pub items_new: usize,
    pub items: Vec<SeenItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Poller {
    /// Checks a source by name, and writes nothing.
    pub async fn check_source(&self, name: &str) -> Result<SourceCheck, CollectError> {
        let source = self.context.store.source_named(name).await?;
        let source = source.ok_or_else(|| CollectError::NoSuchSource(name.to_owned()))?;
        let mut checked = SourceCheck {
            name: source.name.clone(),
            kind: source.kind.clone(),
            ..SourceCheck::default()
        };
        match self.service_status(&source).await? {
            Ok(service) => checked.service = service,
            Err(why) => {
                checked.error = Some(why);
                return Ok(checked);
            }
        }
        match self.preview_source(&source).await? {
            Ok(items) => {
                checked.items_seen = items.len();
                checked.items_new = items.iter().filter(|item| item.is_new).count();
                checked.items = items;
            }
            Err(why) => checked.error = Some(why),
        }
        Ok(checked)
    }

    /// The status of the service of a source.
    async fn service_status(
        &self,
        source: &Source,
    ) -> tidings_store::Result<Result<Option<String>, String>> {
        let settings = match SourceSettings::of(source) {
            Ok(settings) => settings,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let Some(adapter) = settings.adapter() else {
            return Ok(Ok(None));
        };
        let service = self.service_options(adapter);
        let context = PullContext {
            http: &self.context,
            secrets: &self.options.secrets,
            service: &service,
            now: timestamp(self.context.store.now().await?),
            max_items: 1,
            wants_text: false,
            time_limit: REQUEST_TIMEOUT,
            retry_waits: &[],
        };
        let health = adapter.health(&settings.config, &context).await;
        Ok(health.map(Some).map_err(|error| error.message))
    }
}
