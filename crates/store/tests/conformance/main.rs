//! The contract of the store, behaviour by behaviour. Every test here runs on
//! SQLite and on a real PostgreSQL; time stands still unless a test advances it.

#![allow(clippy::unwrap_used)]

#[path = "../fixture/mod.rs"]
mod fixture;

/// Generates two tests of each behaviour, one for each engine.
macro_rules! on_both_engines {
    ($($behaviour:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $behaviour() {
                super::$behaviour(crate::fixture::Fixture::sqlite().await).await;
            })+
        }
        mod postgres {
            $(#[tokio::test]
            async fn $behaviour() {
                super::$behaviour(crate::fixture::Fixture::postgres().await).await;
            })+
        }
    };
}

mod bulk;
mod claim;
mod complete;
mod copied_changes;
mod diagnostics;
mod durability;
mod host_permits;
mod maintenance;
mod near_duplicates;
mod outbox;
mod registry;
mod schema;
mod submit;
