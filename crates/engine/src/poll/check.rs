//! One source, asked without consequences: does its service accept us, and what
//! would a poll bring? Writes nothing.

use std::time::Duration;

use serde::Serialize;
use tidings_adapters::PullContext;
use tidings_store::Source;

use super::one::time;
use super::{CollectError, Poller, SeenItem};
use crate::settings::SourceSettings;

/// Of one request.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// What is known of a source after it was asked.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SourceCheck {
    pub name: String,
    pub kind: String,
    /// What its service says of itself; nothing where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    pub items_seen: usize,
    pub items_new: usize,
    pub items: Vec<SeenItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Poller {
    /// Asks the source of a name what it has now, and keeps nothing.
    pub async fn check_source(&self, name: &str) -> Result<SourceCheck, CollectError> {
        let source = self.outside.store.source_named(name).await?;
        let source = source.ok_or_else(|| CollectError::NoSuchSource(name.to_owned()))?;
        let mut checked = SourceCheck {
            name: source.name.clone(),
            kind: source.kind.clone(),
            ..SourceCheck::default()
        };
        match self.service_of(&source).await? {
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

    /// What the service of a source says of itself.
    async fn service_of(
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
        let context = PullContext {
            http: &self.outside,
            secrets: &self.options.secrets,
            now: time(self.outside.store.now().await?),
            max_items: 1,
            wants_text: false,
            time_limit: TIME_LIMIT,
            retry_waits: &[],
        };
        let health = adapter.health(&settings.config, &context).await;
        Ok(health.map(Some).map_err(|error| error.message))
    }
}
