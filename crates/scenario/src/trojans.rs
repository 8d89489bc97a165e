//! Reads `[trojans]`: which messages to which server are compared with the messages of clients.

use everett_net::HostIndex;

use crate::message_fields as fields;
use crate::model::{
    Accept, FieldCount, FieldStart, HostSetup, MessageField, ReplacedFunction, StateEvent,
    StructFields, Trojans,
};
use crate::reader::{Table, ValueReader, bounds, needed, unknown, wrong};
use crate::source::{Diagnostics, ScenarioLocation};
use crate::toml_tree::{TomlEntry, TomlNode, TomlValue};
use crate::{NameContext, NameKind};

/// Maximum length of a message that is analysed.
const MOST_LENGTH: u32 = 4096;

/// When the message is sent: at a time, or at an event.
type StateTime = (Option<u64>, Option<(StateEvent, ScenarioLocation)>);

/// The context of the table.
struct Reader<'r> {
    hosts: &'r [HostSetup],
    context: &'r dyn NameContext,
    values: ValueReader,
}

/// Reads the table, if there is one.
pub(crate) fn trojans(
    entry: Option<&TomlEntry>,
    hosts: &[HostSetup],
    context: &dyn NameContext,
    diagnostics: &mut Diagnostics,
) -> Option<Trojans> {
    let entry = entry?;
    let mut table = Table::new(
        "trojans".to_owned(),
        entry.key_span,
        &entry.node,
        diagnostics,
    )?;
    let reader = Reader {
        hosts,
        context,
        values: ValueReader::default(),
    };
    let read = reader.read(&mut table, diagnostics);
    table.finish(diagnostics);
    read
}

impl Reader<'_> {
    fn read(&self, table: &mut Table<'_>, diagnostics: &mut Diagnostics) -> Option<Trojans> {
        let server = needed(
            table,
            "[trojans]",
            "server",
            "server = \"server\"",
            diagnostics,
        );
        let server = server.and_then(|node| self.server(node, diagnostics));
        let clients = needed(
            table,
            "[trojans]",
            "clients",
            "clients = [\"client\"]",
            diagnostics,
        );
        let clients = clients.map(|node| self.clients(node, server, diagnostics));
        let port = needed(table, "[trojans]", "port", "port = 9000", diagnostics);
        let port = port.and_then(|node| self.values.number(node, 65_535, diagnostics));
        let lengths = needed(
            table,
            "[trojans]",
            "length",
            "length = 4 or \"1-16\"",
            diagnostics,
        );
        let lengths = lengths.and_then(|node| self.lengths(node, diagnostics));
        let protocols = [("udp", false), ("tcp", true)];
        let is_stream = table.get("protocol").map_or(Some(false), |node| {
            self.values.word(node, &protocols, diagnostics)
        });
        let number = table.get("number");
        let number = number.and_then(|node| self.message_number(node, diagnostics));
        let against = [("state", false), ("ever", true)];
        let ever = table.get("against").map_or(Some(false), |node| {
            self.values.word(node, &against, diagnostics)
        });
        let (accept, reject) = (table.get("accept"), table.get("reject"));
        let accept = self.accept(accept, reject, diagnostics);
        let state = table.get("state");
        let state = state.and_then(|node| self.state(node, diagnostics));
        let (state_ns, state_event) = state.unwrap_or_default();
        let replace = table.get("replace");
        let replace = replace.map_or_else(Vec::new, |node| self.replace(node, diagnostics));
        let longest = lengths.map(|lengths| lengths.1);
        let (fields, fields_of) = self.fields(table, longest, diagnostics);
        let (least, most) = lengths?;
        Some(Trojans {
            server: server?,
            clients: clients?,
            is_stream: is_stream?,
            port: u16::try_from(port?).ok()?,
            number,
            least_length: least,
            most_length: most,
            fields,
            fields_of,
            accept: accept?,
            ever: ever?,
            state_ns,
            state_event,
            replace,
        })
    }

    /// Reads which of the messages is looked at, counted from 1.
    fn message_number(&self, node: &TomlNode, diagnostics: &mut Diagnostics) -> Option<u32> {
        let number = self.values.small(node, diagnostics);
        if number == Some(0) {
            let help = "messages are counted from 1";
            diagnostics.help(node.span, "there is no message 0".to_owned(), help);
        }
        number
    }

    /// Reads the fields of messages with their masks, or the struct that has them.
    fn fields(
        &self,
        table: &mut Table<'_>,
        longest: Option<u32>,
        diagnostics: &mut Diagnostics,
    ) -> (Vec<MessageField>, Option<StructFields>) {
        let most = longest.unwrap_or(MOST_LENGTH);
        let (fields, mask) = (table.get("fields"), table.get("mask"));
        let fields_of = self.struct_fields(fields, mask, diagnostics);
        let fields = fields.filter(|_| fields_of.is_none());
        let mut fields = fields.map_or_else(Vec::new, |node| fields::read(node, most, diagnostics));
        if let (Some(node), None) = (mask, &fields_of) {
            fields::mask(node, &mut fields, diagnostics);
            if let Err((message, help)) = fields::expect_unmasked(&fields, longest) {
                diagnostics.help(node.span, message, help);
            }
        }
        (fields, fields_of)
    }

    /// Reads replaced functions, each with the number that it returns or the bounds of that number.
    fn replace(&self, node: &TomlNode, diagnostics: &mut Diagnostics) -> Vec<ReplacedFunction> {
        const WANTED: &str = "what functions return, such as { checksum = [0, 255], verify = 1 }";
        let TomlValue::Table(entries) = &node.value else {
            wrong(node, WANTED, &node.value, diagnostics);
            return Vec::new();
        };
        let mut all = Vec::new();
        for entry in entries {
            let Some((low, high)) = bounds(&entry.node, diagnostics) else {
                continue;
            };
            all.push(ReplacedFunction {
                name: entry.key.clone(),
                low,
                high,
                place: diagnostics.place(entry.key_span),
            });
        }
        all
    }

    /// Returns the host with this name, or the hosts of the group with this name.
    fn named(&self, node: &TomlNode, name: &str, diagnostics: &mut Diagnostics) -> Vec<HostIndex> {
        let is_meant = |host: &&HostSetup| host.name == name || host.group == name;
        let found: Vec<HostIndex> = self
            .hosts
            .iter()
            .filter(is_meant)
            .map(|host| host.index)
            .collect();
        if found.is_empty() {
            let known: Vec<&str> = self.hosts.iter().map(|host| host.name.as_str()).collect();
            unknown(node.span, "host", name, &known, diagnostics);
        }
        found
    }

    fn server(&self, node: &TomlNode, diagnostics: &mut Diagnostics) -> Option<HostIndex> {
        let name = self.values.text(node, diagnostics)?;
        let found = self.named(node, &name, diagnostics);
        if found.len() > 1 {
            let message = format!("{name:?} is a group of {} hosts", found.len());
            diagnostics.help(
                node.span,
                message,
                "name one of them: they run the same program",
            );
        }
        found.first().copied()
    }

    fn clients(
        &self,
        node: &TomlNode,
        server: Option<HostIndex>,
        diagnostics: &mut Diagnostics,
    ) -> Vec<HostIndex> {
        let mut all = Vec::new();
        let each = |values: ValueReader, node: &TomlNode, diagnostics: &mut Diagnostics| {
            let name = values.text(node, diagnostics)?;
            let found = self.named(node, &name, diagnostics);
            if found.len() == 1 && found.first().copied() == server {
                let help = "say which hosts send messages to the server";
                diagnostics.help(node.span, format!("{name:?} is the server"), help);
            }
            Some(found)
        };
        for found in self.values.list(node, diagnostics, each) {
            all.extend(found.into_iter().filter(|host| Some(*host) != server));
        }
        all.sort_unstable();
        all.dedup();
        if all.is_empty() && diagnostics.is_empty() {
            diagnostics.error(node.span, "there is no client");
        }
        all
    }

    fn lengths(&self, node: &TomlNode, diagnostics: &mut Diagnostics) -> Option<(u32, u32)> {
        let most = u64::from(MOST_LENGTH);
        let (least, most) = match &node.value {
            TomlValue::Integer(_) => {
                let length = self.values.number(node, most, diagnostics)? as u32;
                (length, length)
            }
            _ => self.values.parsed(node, diagnostics, |text| {
                let wrong = || format!("{text:?} is not a range of lengths, such as \"1-16\"");
                let (least, most) = text.split_once('-').ok_or_else(wrong)?;
                let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
                Ok((number(least)?, number(most)?))
            })?,
        };
        if least > most || most > MOST_LENGTH {
            let message = format!("lengths from {least} to {most} are none");
            let help = format!("the first is at most the last, and that at most {MOST_LENGTH}");
            diagnostics.help(node.span, message, help);
            return None;
        }
        Some((least, most))
    }

    fn state(&self, node: &TomlNode, diagnostics: &mut Diagnostics) -> Option<StateTime> {
        const WANTED: &str = "at = \"2s\", message = 1, or mark = \"NAME\"";
        let TomlValue::Table(_) = &node.value else {
            let wanted = format!("a table with {WANTED}");
            wrong(node, &wanted, &node.value, diagnostics);
            return None;
        };
        let mut table = Table::new("trojans.state".to_owned(), node.span, node, diagnostics)?;
        let (at, message) = (table.get("at"), table.get("message"));
        let mark = table.get("mark");
        table.finish(diagnostics);
        let event = match (at, message, mark) {
            (Some(at), None, None) => {
                return Some((self.values.duration_ns(at, diagnostics), None));
            }
            (None, Some(message), None) => {
                let number = self.values.small(message, diagnostics)?;
                if number == 0 {
                    let help = "messages are counted from 1";
                    diagnostics.help(message.span, "there is no message 0".to_owned(), help);
                }
                StateEvent::Message(number)
            }
            (None, None, Some(mark)) => StateEvent::Mark(self.values.text(mark, diagnostics)?),
            _ => {
                let help = format!("write one of: {WANTED}");
                diagnostics.help(node.span, "a state says one thing", help);
                return None;
            }
        };
        Some((None, Some((event, diagnostics.place(node.span)))))
    }

    fn accept(
        &self,
        accept: Option<&TomlNode>,
        reject: Option<&TomlNode>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Accept> {
        if let (Some(_), Some(reject)) = (accept, reject) {
            let help = "leave one of them out: what is not accepted is rejected";
            diagnostics.help(
                reject.span,
                "both \"accept\" and \"reject\" are given",
                help,
            );
        }
        if let Some(node) = reject {
            let mut table = Table::new("trojans.reject".to_owned(), node.span, node, diagnostics)?;
            let reply = table.get("reply");
            if reply.is_none() {
                let help = "write: reply = \"^ERR\"";
                diagnostics.help(node.span, "reject says nothing", help);
            }
            let reply = reply.and_then(|node| self.pattern(node, diagnostics));
            table.finish(diagnostics);
            return Some(Accept::ReplyOther(reply?));
        }
        let Some(node) = accept else {
            return Some(Accept::Reply);
        };
        if let TomlValue::Text(_) = &node.value {
            let words = [("reply", false), ("mark", true)];
            return Some(match self.values.word(node, &words, diagnostics)? {
                true => Accept::Marks,
                false => Accept::Reply,
            });
        }
        let mut table = Table::new("trojans.accept".to_owned(), node.span, node, diagnostics)?;
        let (calls, reply) = (table.get("calls"), table.get("reply"));
        let other = table.get("reject_reply");
        table.finish(diagnostics);
        match (calls, reply, other) {
            (Some(node), None, None) => Some(Accept::Calls(self.calls(node, diagnostics))),
            (None, Some(node), None) => self.pattern(node, diagnostics).map(Accept::ReplyMatches),
            (None, None, Some(node)) => self.pattern(node, diagnostics).map(Accept::ReplyOther),
            _ => {
                let help =
                    "write one of: calls = [\"rename\"], reply = \"^OK\", reject_reply = \"^ERR\"";
                diagnostics.help(node.span, "accept says one thing", help);
                None
            }
        }
    }

    fn calls(&self, node: &TomlNode, diagnostics: &mut Diagnostics) -> Vec<String> {
        let each = |values: ValueReader, node: &TomlNode, diagnostics: &mut Diagnostics| {
            let name = values.text(node, diagnostics)?;
            if let Err(message) = self.context.check(NameKind::Call, &name) {
                diagnostics.error(node.span, message);
            }
            Some(name)
        };
        let calls = self.values.list(node, diagnostics, each);
        if calls.is_empty() && diagnostics.is_empty() {
            let help = "name system calls, such as \"rename\"";
            diagnostics.help(node.span, "there is no call that accepts", help);
        }
        calls
    }

    fn pattern(&self, node: &TomlNode, diagnostics: &mut Diagnostics) -> Option<String> {
        let text = self.values.text(node, diagnostics)?;
        if let Err(message) = self.context.check(NameKind::ReplyPattern, &text) {
            diagnostics.error(node.span, message);
        }
        Some(text)
    }

    /// Reads the struct whose members are the fields, if the scenario names one.
    fn struct_fields(
        &self,
        fields: Option<&TomlNode>,
        mask: Option<&TomlNode>,
        diagnostics: &mut Diagnostics,
    ) -> Option<StructFields> {
        let fields = fields?;
        let TomlValue::Text(name) = &fields.value else {
            return None;
        };
        let names = mask.map(|node| fields::mask_names(node, diagnostics));
        Some(StructFields {
            name: name.clone(),
            mask: names.into_iter().flatten().map(|(_, name)| name).collect(),
            place: diagnostics.place(fields.span),
            mask_place: diagnostics.place(mask.unwrap_or(fields).span),
        })
    }
}

impl Trojans {
    /// Sets the fields to the members of the struct that the scenario names: name, offset and size
    /// of each. Members past the end of the longest message are omitted. The error describes a
    /// problem with the mask and a way to fix it.
    pub fn set_members(
        &mut self,
        members: impl IntoIterator<Item = (String, u32, Option<u32>)>,
    ) -> Result<(), (String, String)> {
        let most = self.most_length;
        let members = members.into_iter().filter(|(_, offset, _)| *offset < most);
        let mask = self.fields_of.as_ref().map(|of| of.mask.clone());
        let mask = mask.unwrap_or_default();
        let fields = members.map(|(name, offset, size)| MessageField {
            masked: mask.contains(&name),
            start: FieldStart::At(offset),
            ..MessageField::new(
                &name,
                match size.filter(|size| offset.saturating_add(*size) <= most) {
                    Some(size) => FieldCount::Fixed(size),
                    None => FieldCount::Rest,
                },
            )
        });
        self.fields = fields.collect();
        let known: Vec<&str> = self
            .fields
            .iter()
            .map(|field| field.name.as_str())
            .collect();
        if let Some(name) = mask.iter().find(|name| !known.contains(&name.as_str())) {
            let help = format!("there are: {}", known.join(", "));
            return Err((format!("there is no field {name:?} to mask"), help));
        }
        fields::expect_unmasked(&self.fields, Some(most))
            .map_err(|(message, help)| (message, help.to_owned()))
    }
}
