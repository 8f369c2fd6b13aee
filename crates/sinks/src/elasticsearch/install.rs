//! What must be there before the first document: the index template, the index
//! behind its alias; and whether what is there is what we need. Changes nothing
//! that exists but an older template of ours.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tidings_net::http::Method;
use tracing::info;

use super::{Elasticsearch, json_of, template, words};
use crate::endpoint::Body;
use crate::sink::Verdict;

impl Elasticsearch {
    /// Puts the template and the alias in place, once.
    pub(super) async fn install(&self, now: Timestamp) -> Result<(), Verdict> {
        let mut is_installed = self.is_installed.lock().await;
        if !*is_installed {
            self.install_template(now).await?;
            if !self.per_source {
                self.install_alias(now).await?;
            }
            *is_installed = true;
        }
        Ok(())
    }

    async fn install_template(&self, now: Timestamp) -> Result<(), Verdict> {
        let (name, pattern) = if self.per_source {
            ("tidings-per-source".to_owned(), "*_raw_content".to_owned())
        } else {
            (
                format!("tidings-{}", self.index),
                format!("{}-*", self.index),
            )
        };
        let path = format!("/_index_template/{name}");
        let found = self.ask(Method::GET, &path, None).await?;
        let version = json_of(&found)["index_templates"][0]["index_template"]["version"].as_u64();
        match found.status {
            // A newer program's template has all that we need.
            200 if version.is_some_and(|version| version >= template::VERSION) => return Ok(()),
            200 | 404 => {}
            _ => return Err(self.endpoint.refused(&found, now)),
        }
        let template = Body::json(&template::template(&pattern));
        let put = self.ask(Method::PUT, &path, Some(template)).await?;
        if put.is_success() {
            info!(
                sink = self.name,
                template = name,
                "installed the index template"
            );
            Ok(())
        } else {
            Err(self.endpoint.refused(&put, now))
        }
    }

    async fn install_alias(&self, now: Timestamp) -> Result<(), Verdict> {
        let alias = format!("/_alias/{}", self.index);
        let found = self.ask(Method::GET, &alias, None).await?;
        match found.status {
            200 => return Ok(()),
            404 => {}
            _ => return Err(self.endpoint.refused(&found, now)),
        }
        let first = format!("/{}-000001", self.index);
        let body = json!({ "aliases": { &self.index: { "is_write_index": true } } });
        let made = self
            .ask(Method::PUT, &first, Some(Body::json(&body)))
            .await?;
        if made.is_success() {
            return Ok(());
        }
        // Another of us may have been faster.
        let found = self.ask(Method::GET, &alias, None).await?;
        if found.status == 200 {
            Ok(())
        } else {
            Err(self.endpoint.refused(&made, now))
        }
    }

    /// The version of the server, if it lets us in.
    pub(super) async fn greet(&self) -> Result<String, String> {
        let response = self.ask(Method::GET, "/", None).await.map_err(words)?;
        if !response.is_success() {
            return Err(self.endpoint.refusal(&response));
        }
        let said = json_of(&response);
        let kind = said["version"]["distribution"].as_str();
        match said["version"]["number"].as_str() {
            Some(number) => Ok(format!("{} {number}", kind.unwrap_or("elasticsearch"))),
            None => Err(format!(
                "{} is no Elasticsearch or OpenSearch: {}",
                self.endpoint.server(),
                self.endpoint.excerpt(&response)
            )),
        }
    }

    /// Whether the index that is there has our fields.
    pub(super) async fn compare_mapping(&self) -> Result<String, String> {
        if self.per_source {
            return Ok("an index for each source, made with its first document".to_owned());
        }
        let path = format!("/{}/_mapping", self.index);
        let response = self.ask(Method::GET, &path, None).await.map_err(words)?;
        if !response.is_success() {
            return Err(self.endpoint.refusal(&response));
        }
        let said = json_of(&response);
        let indices = said.as_object().cloned().unwrap_or_default();
        for (index, found) in &indices {
            let there = &found["mappings"]["properties"];
            let mut missing = Vec::new();
            note_missing("", &self.known, there, &mut missing);
            if !missing.is_empty() {
                return Err(format!(
                    "{index} has no {}; it was not made by this sink: reindex it, or choose another index",
                    missing.join(", ")
                ));
            }
        }
        let names: Vec<_> = indices.keys().map(String::as_str).collect();
        Ok(format!("{} → {}", self.index, names.join(", ")))
    }
}

fn note_missing(path: &str, wanted: &Map<String, Value>, there: &Value, missing: &mut Vec<String>) {
    for (name, mapping) in wanted {
        let full = format!("{path}{name}");
        match (&there[name], mapping["properties"].as_object()) {
            (Value::Null, _) => missing.push(full),
            (found, Some(inner)) => {
                note_missing(&format!("{full}."), inner, &found["properties"], missing);
            }
            _ => {}
        }
    }
}
