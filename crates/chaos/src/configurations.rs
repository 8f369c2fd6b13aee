//! Two machines with different configurations on one store, each killed and
//! restarted: no sink suffers from a process that does not know it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;
use tidings_sim::FakeElasticsearch;

use crate::environment::{Environment, Process, index_sink, wait_until, web};
use crate::ledger::LedgerSummary;
use crate::scenario::Measured;
use crate::setting::Setting;

const KILLS: usize = 20;

/// One has an index and a file, the other an index of its own.
const MACHINES: [&str; 2] = ["first", "second"];

pub(crate) async fn killed_repeatedly(setting: Setting) -> anyhow::Result<Measured> {
    // Slow enough that work is left at the last kill.
    let delay = "fetch.host_delay_ms=100";
    let env = Environment::new(setting, web(8, setting.size(80, 400))).await?;
    let mirror = FakeElasticsearch::start().await?;
    let lines = "[sinks.lines]\nkind = 'jsonl'\npath = 'lines'\nduplicates = true\n";
    let first = index_sink("index", &env.index) + lines;
    let configs = [first, index_sink("mirror", &mirror)];
    for (machine, config) in MACHINES.into_iter().zip(configs) {
        fs::write(env.folder().join(config_file(machine)), config)?;
    }
    let start = |machine: &str, command: &[&str]| -> anyhow::Result<Process> {
        let mut process = Command::new(setting.tidings);
        process.env_clear().args(command);
        let config = config_file(machine);
        env.configure(&mut process, &config, &env.address, machine, &[delay]);
        env.spawn(process)
    };
    // Documents get deliveries for the sinks that are registered.
    let registering = MACHINES.map(|machine| start(machine, &["work", "--roles", "deliver"]));
    wait_until(setting.step_timeout(), "the sinks", async || {
        Ok(env.store.outbox().await?.len() == 3)
    })
    .await?;
    drop(registering);

    let [mut one, mut other] = [start("first", &["run"])?, start("second", &["run"])?];
    let mut during_work = 0;
    for kill in 0..KILLS {
        // Another moment of the work each time.
        let pause = 300 + kill * kill * 7919 % 700;
        tokio::time::sleep(Duration::from_millis(pause as u64)).await;
        during_work += usize::from(!env.is_finished().await?);
        let (victim, machine) = match kill % 2 {
            0 => (&mut one, "first"),
            _ => (&mut other, "second"),
        };
        victim.kill_now()?;
        *victim = start(machine, &["run"])?;
    }
    env.wait_until_delivered(setting.work_timeout()).await?;
    drop((one, other));

    let in_mirror = LedgerSummary::of_index(&env, &mirror);
    let revisions = revisions_in_file(&env.folder().join("first").join("lines"))?;
    let repeated = revisions.values().filter(|found| **found != [1]).count();
    let is_same = revisions.len() == in_mirror.expected && repeated == 0;
    Ok(Measured::new(
        during_work >= KILLS / 2,
        format!("{KILLS} kills, {during_work} of them during work"),
    )
    .with_ledger(&LedgerSummary::of(&env))
    .and(true, "the other index")
    .with_ledger(&in_mirror)
    .and(
        is_same,
        format!("{} in the file, {repeated} repeated", revisions.len()),
    )
    .violated(!is_same))
}

fn config_file(machine: &str) -> String {
    format!("{machine}.toml")
}

/// The revisions of each document in the files of a folder.
fn revisions_in_file(folder: &Path) -> anyhow::Result<BTreeMap<String, Vec<u64>>> {
    #[derive(Deserialize)]
    struct Line {
        id: String,
        revision: u64,
    }
    let mut revisions: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for file in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        for line in fs::read_to_string(file?.path())?.lines() {
            let line: Line = serde_json::from_str(line)?;
            revisions.entry(line.id).or_default().push(line.revision);
        }
    }
    Ok(revisions)
}
