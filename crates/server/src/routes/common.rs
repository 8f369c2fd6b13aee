//! Parameters that routes of the API and of the dashboard share.

use crate::params::{Param, ParamKind};

pub(super) const AFTER: Param = Param::optional(
    "after",
    ParamKind::Text,
    "cursor: `next` of the previous page",
);
pub(super) const AFTER_ID: Param = Param::optional(
    "after",
    ParamKind::ID,
    "cursor: `next` of the previous page",
);
pub(super) const ID: Param = Param::required("id", ParamKind::ID, "id");
pub(super) const FRONTIER_ID: Param =
    Param::required("id", ParamKind::FrontierId, "frontier id, 48 hex digits");
pub(super) const QUERY: Param = Param::optional("q", ParamKind::Text, "search terms");
pub(super) const SOURCE_ID: Param =
    Param::optional("source_id", ParamKind::ID, "only of this source");
pub(super) const HOST: Param =
    Param::required("host", ParamKind::Text, "host key, for example example.com");
pub(super) const SINK: Param = Param::required("sink", ParamKind::Text, "name of the sink");
