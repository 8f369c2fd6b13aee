//! What a process costs, as Linux counts it: for benchmarks and for fault
//! scenarios that bound CPU time and memory.

use std::fs;

/// Seconds of CPU time that a process has used, its threads included; 0 where
/// that can't be read.
pub fn cpu_seconds(pid: &str) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let field = |n: usize| -> u64 {
        let field = after_name.split_whitespace().nth(n);
        field.and_then(|field| field.parse().ok()).unwrap_or(0)
    };
    // USER_HZ is 100 on every Linux that we know.
    (field(11) + field(12)) as f64 / 100.0
}

/// The most memory that this process has had, in MiB, since [`reset_peak`].
pub fn peak_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// Counts the peak from now on.
pub fn reset_peak() {
    // Where that is not allowed the peak is one of the whole run.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The load of the machine before a run, as the kernel reports it.
pub fn load_average() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.trim().to_owned()
}
