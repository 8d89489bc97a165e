//! Finds the time at which worlds reach the server state under analysis, if the scenario gives an
//! event instead of a time.

use everett_engine::{Explorer, Start};
use everett_scenario::StateEvent;
use everett_trojans::{Moments, Point};

use super::{Analysis, incomplete, quiet};
use crate::error::{Error, Result};
use crate::explore::prepare;

impl Analysis<'_> {
    /// Sets the time of the message to that of the scenario's event, if it has one. All worlds that
    /// reach the event must do so at the same time.
    pub(super) fn resolve_state(&mut self) -> Result<()> {
        let Some((event, place)) = self.setup.state_event.clone() else {
            return Ok(());
        };
        let (point, what) = match event {
            StateEvent::Message(number) => {
                let point = Point::Received(self.setup.server, self.setup.port, number);
                (point, format!("the server has received message {number}"))
            }
            StateEvent::Mark(name) => {
                let what = format!("a host has marked {name:?}");
                (Point::Marked(name), what)
            }
        };
        let (config, images) = prepare(&self.spec.run, self.session)?;
        let mut moments = Moments::new(point);
        let mut explorer = Explorer::new(&images, quiet(&config), Start::Beginning)?;
        let stopped = explorer.run(&self.session.stop, &mut moments);
        let mut times = moments.times_ns.iter();
        let (message, help) = match (times.next(), times.next_back()) {
            (Some(at_ns), None) => {
                self.setup.state_ns = Some(*at_ns);
                return Ok(());
            }
            (Some(first), Some(last)) => {
                let shown = |ns: &u64| format!("{} us", ns / 1000);
                let (first, last) = (shown(first), shown(last));
                let message =
                    format!("{what} at different times: {first} to {last} after the start");
                (message, "say a time: state = { at = \"2s\" }".to_owned())
            }
            (None, _) => {
                let help = match incomplete(&explorer, stopped) {
                    Some(why) => format!("not all was explored: {why}"),
                    None => "on no path does that happen".to_owned(),
                };
                (format!("it never happens that {what}"), help)
            }
        };
        let problems = place.wrong(message, help);
        Err(Error::Scenario { problems })
    }
}
