//! Tests of whole hosts.
