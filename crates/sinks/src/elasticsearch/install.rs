//! Installs what the first document needs: the index template and the index behind
//! its alias; looks whether they are there, and compares an existing mapping with
//! ours. Changes nothing that exists but an older template of ours, and adds fields
//! that an older index lacks.

use std::sync::atomic::Ordering;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tidings_net::http::Method;
use tracing::info;

use super::{Elasticsearch, error_text, json_of, template};
use crate::endpoint::Body;
use crate::sink::Verdict;

impl Elasticsearch {
    /// Installs the template and the alias, once.
    pub(super) async fn ensure_installed(&self, now: Timestamp) -> Result<(), Verdict> {
        let mut is_installed = self.is_installed.lock().await;
        if !*is_installed {
            self.install_template(now).await?;
            if !self.per_source {
                self.install_alias(now).await?;
            }
            self.add_fields(now).await?;
            *is_installed = true;
        }
        Ok(())
    }

    pub(super) fn template_name(&self) -> String {
        match self.per_source {
            true => "tidings-per-source".to_owned(),
            false => format!("tidings-{}", self.index),
        }
    }

    /// The version of the template on the server, if it is there.
    async fn template_version(&self, now: Timestamp) -> Result<Option<u64>, Verdict> {
        let path = format!("/_index_template/{}", self.template_name());
        let found = self.request(Method::GET, &path, None).await?;
        let version = &json_of(&found)["index_templates"][0]["index_template"]["version"];
        match found.status {
            200 => Ok(Some(version.as_u64().unwrap_or(0))),
            404 => Ok(None),
            _ => Err(self.endpoint.retry_verdict(&found, now)),
        }
    }

    /// Whether the template is there, or what will install it.
    pub(super) async fn template_state(&self, now: Timestamp) -> Result<String, String> {
        let (template, sink) = (self.template_name(), &self.name);
        let installs = format!("`tidings run` installs it, or: tidings sink install {sink}");
        Ok(
            match self.template_version(now).await.map_err(error_text)? {
                None => format!("{template} is not installed yet; {installs}"),
                Some(version) if version < template::VERSION => {
                    format!("{template} has version {version}; {installs}")
                }
                Some(_) => format!("{template} is installed"),
            },
        )
    }

    async fn install_template(&self, now: Timestamp) -> Result<(), Verdict> {
        // The template of a newer version has all fields that we need.
        let version = self.template_version(now).await?;
        if version.is_some_and(|version| version >= template::VERSION) {
            return Ok(());
        }
        let pattern = match self.per_source {
            true => "*_raw_content".to_owned(),
            false => format!("{}-*", self.index),
        };
        let path = format!("/_index_template/{}", self.template_name());
        let template = Body::json(&template::template(&pattern));
        let response = self.request(Method::PUT, &path, Some(template)).await?;
        if response.is_success() {
            info!(
                sink = self.name,
                template = self.template_name(),
                "installed the index template"
            );
            Ok(())
        } else {
            Err(self.endpoint.retry_verdict(&response, now))
        }
    }

    async fn install_alias(&self, now: Timestamp) -> Result<(), Verdict> {
        let alias = format!("/_alias/{}", self.index);
        let found = self.request(Method::GET, &alias, None).await?;
        match found.status {
            200 => return Ok(()),
            404 => {}
            _ => return Err(self.endpoint.retry_verdict(&found, now)),
        }
        let first = format!("/{}-000001", self.index);
        let body = json!({ "aliases": { &self.index: { "is_write_index": true } } });
        let created = self
            .request(Method::PUT, &first, Some(Body::json(&body)))
            .await?;
        if created.is_success() {
            return Ok(());
        }
        // Another process may have created it meanwhile.
        let found = self.request(Method::GET, &alias, None).await?;
        if found.status == 200 {
            Ok(())
        } else {
            Err(self.endpoint.retry_verdict(&created, now))
        }
    }

    /// Adds the fields that an index of an earlier version lacks. One that refuses
    /// them goes without.
    async fn add_fields(&self, now: Timestamp) -> Result<(), Verdict> {
        if !self.per_source && self.has_added_fields().await? {
            return Ok(());
        }
        let indices = match self.per_source {
            true => "*_raw_content",
            false => self.index.as_str(),
        };
        let path = format!("/{indices}/_mapping?allow_no_indices=true");
        let fields = Body::json(&template::added_mappings());
        let response = self.request(Method::PUT, &path, Some(fields)).await?;
        let is_added = match response.status {
            // An index that is created later has them from the template.
            404 => self.per_source,
            429 | 500.. => return Err(self.endpoint.retry_verdict(&response, now)),
            _ => response.is_success(),
        };
        if !is_added {
            info!(
                sink = self.name,
                error = self.endpoint.describe_error(&response),
                "index without the fields content_quality and feed_md5"
            );
        }
        self.lacks_added_fields.store(!is_added, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the index behind the alias has the fields already.
    async fn has_added_fields(&self) -> Result<bool, Verdict> {
        let path = format!("/{}/_mapping", self.index);
        let response = self.request(Method::GET, &path, None).await?;
        let reply = json_of(&response);
        let added = template::added_mappings();
        let has_all = |index: &Value| {
            let existing = &index["mappings"]["properties"];
            let added = added["properties"].as_object();
            added.is_some_and(|added| added.keys().all(|name| !existing[name].is_null()))
        };
        let indices = reply.as_object();
        Ok(response.is_success()
            && indices.is_some_and(|indices| !indices.is_empty() && indices.values().all(has_all)))
    }

    /// Distribution and version of the server; an error without access.
    pub(super) async fn server_version(&self) -> Result<String, String> {
        let response = self
            .request(Method::GET, "/", None)
            .await
            .map_err(error_text)?;
        if !response.is_success() {
            return Err(self.endpoint.describe_error(&response));
        }
        let reply = json_of(&response);
        let kind = reply["version"]["distribution"].as_str();
        match reply["version"]["number"].as_str() {
            Some(number) => Ok(format!("{} {number}", kind.unwrap_or("elasticsearch"))),
            None => Err(format!(
                "{} is not Elasticsearch or OpenSearch: {}",
                self.endpoint.server(),
                self.endpoint.excerpt(&response)
            )),
        }
    }

    /// Whether the existing index has our fields.
    pub(super) async fn compare_mapping(&self) -> Result<String, String> {
        if self.per_source {
            return Ok("one index per source, created with its first document".to_owned());
        }
        let path = format!("/{}/_mapping", self.index);
        let response = self
            .request(Method::GET, &path, None)
            .await
            .map_err(error_text)?;
        if response.status == 404 {
            return Ok(format!("{} will be created", self.index));
        }
        if !response.is_success() {
            return Err(self.endpoint.describe_error(&response));
        }
        let reply = json_of(&response);
        let indices = reply.as_object().cloned().unwrap_or_default();
        for (index, found) in &indices {
            let existing = &found["mappings"]["properties"];
            let mut missing = Vec::new();
            collect_missing("", &self.first_mapping, existing, &mut missing);
            if !missing.is_empty() {
                return Err(format!(
                    "{index} lacks the fields {}; it was not created by this sink: reindex it, or choose another index",
                    missing.join(", ")
                ));
            }
        }
        let names: Vec<_> = indices.keys().map(String::as_str).collect();
        Ok(format!("{} → {}", self.index, names.join(", ")))
    }
}

fn collect_missing(
    path: &str,
    expected: &Map<String, Value>,
    existing: &Value,
    missing: &mut Vec<String>,
) {
    for (name, mapping) in expected {
        let full = format!("{path}{name}");
        match (&existing[name], mapping["properties"].as_object()) {
            (Value::Null, _) => missing.push(full),
            (found, Some(inner)) => {
                collect_missing(&format!("{full}."), inner, &found["properties"], missing);
            }
            _ => {}
        }
    }
}
