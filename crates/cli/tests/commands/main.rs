//! The commands, as a user runs them. They are one test binary, which is linked once and whose
//! tests keep all processors busy without a pause between files.

#[path = "../common/mod.rs"]
mod common;

mod against;
mod bad_input;
mod bootstrap;
mod build_tools;
mod cluster;
mod cluster_balance;
mod cluster_elastic;
mod cluster_gaps;
mod cluster_limits;
mod cluster_machines;
mod cluster_secrets;
mod cluster_upkeep;
mod cluster_worlds;
mod deploy;
mod disk;
mod distributed_tests;
mod exit_codes;
mod fault_corrupt;
mod fault_search;
mod fault_worlds;
mod findings;
mod harden;
mod klee;
mod layers;
mod limits;
mod modules;
mod native;
mod other_builds;
mod output;
mod peers;
mod power;
mod races;
mod random_programs;
mod random_worlds;
mod replays;
mod runs;
mod same_results;
mod scenarios;
mod teams;
mod trojan_afterwards;
mod trojan_clients;
mod trojan_fields;
mod trojan_limits;
mod trojan_replace;
mod trojan_rules;
mod trojan_state;
mod trojan_streams;
mod trojan_targets;
mod trojans;
mod unsupported;
mod world_commands;
