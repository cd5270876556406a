//! The screen of `foresee observe --tui`: programs, properties, findings and messages, live.
//!
//! [`State`] is what is shown and which part of it; it knows nothing of terminals. [`Screen`] has the terminal, which gets
//! its old content back whatever happens: at the end, on errors, on signals (the loop of the command ends, and the screen
//! with it) and on panics (by a hook of ratatui).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{self, IsTerminal};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use foresee_observe::{Listening, ProgramId};
use foresee_support::count::count;
use foresee_trace::{Name, Visible};
use indicatif::{HumanBytes, HumanCount};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, TableState, Wrap};
use ratatui::{DefaultTerminal, Frame};

use crate::output;

/// How many findings, programs that are over, and lines of messages are kept.
const KEPT: usize = 10_000;

/// What can be scrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pane {
    Programs,
    Properties,
    Findings,
    Messages,
}

const PANES: [Pane; 4] = [Pane::Programs, Pane::Properties, Pane::Findings, Pane::Messages];

/// What a key asks of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To go on.
    None,
    /// To end, with a verdict on every program.
    Stop,
}

/// A program in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ProgramRow {
    label: String,
    events: u64,
    /// Events a second, or how it ended.
    speed: Result<u64, String>,
    waiting: u64,
    connections: usize,
}

/// A finding in the list.
#[derive(Clone, Debug)]
struct FindingRow {
    program: String,
    kind: String,
    property: String,
    message: String,
}

/// What is shown.
pub(crate) struct State {
    addresses: Vec<String>,
    running: Vec<ProgramRow>,
    over: VecDeque<ProgramRow>,
    over_count: u64,
    /// Findings by property.
    properties: BTreeMap<String, u64>,
    findings: VecDeque<FindingRow>,
    finding_count: u64,
    messages: VecDeque<String>,
    dropped: u64,
    pane: Pane,
    /// The row at hand of each part, and the first that is shown.
    at: [Option<usize>; PANES.len()],
    first: [usize; PANES.len()],
    /// Whether the finding at hand is shown in full, or help.
    shows_finding: bool,
    shows_help: bool,
    is_stopping: bool,
    last: (Option<Instant>, HashMap<ProgramId, u64>),
}

impl State {
    pub(crate) fn new(properties: impl Iterator<Item = String>) -> State {
        State {
            addresses: Vec::new(),
            running: Vec::new(),
            over: VecDeque::new(),
            over_count: 0,
            properties: properties.map(|name| (name, 0)).collect(),
            findings: VecDeque::new(),
            finding_count: 0,
            messages: VecDeque::new(),
            dropped: 0,
            pane: Pane::Findings,
            at: [None; PANES.len()],
            first: [0; PANES.len()],
            shows_finding: false,
            shows_help: false,
            is_stopping: false,
            last: (None, HashMap::new()),
        }
    }

    fn finding(&mut self, program: &str, kind: &str, property: &str, message: &str) {
        *self.properties.entry(Visible(property).to_string()).or_default() += 1;
        self.finding_count += 1;
        // Whoever looks at the last row wants to see the next one, too.
        let is_last = self.selected(Pane::Findings).is_none_or(|at| at + 1 >= self.findings.len());
        self.findings.push_back(FindingRow {
            program: program.to_owned(),
            kind: kind.to_owned(),
            property: Visible(property).to_string(),
            message: Visible(message).to_string(),
        });
        if self.findings.len() > KEPT {
            self.findings.pop_front();
        }
        if is_last && !self.shows_finding {
            self.select(Pane::Findings, self.findings.len().saturating_sub(1));
        }
    }

    fn over(&mut self, label: &str, events: u64, how: String) {
        self.over_count += 1;
        let speed = Err(how);
        let row = ProgramRow { label: label.to_owned(), events, speed, waiting: 0, connections: 0 };
        self.over.push_front(row);
        self.over.truncate(KEPT);
    }

    fn message(&mut self, text: &str) {
        let is_last = self.selected(Pane::Messages).is_none_or(|at| at + 1 >= self.messages.len());
        self.messages.extend(text.lines().map(str::to_owned));
        while self.messages.len() > KEPT {
            self.messages.pop_front();
            self.dropped += 1;
        }
        if is_last {
            self.select(Pane::Messages, self.messages.len().saturating_sub(1));
        }
    }

    fn now(&mut self, now: &Listening) {
        let time = self.last.0.replace(Instant::now());
        let seconds = time.map_or(0.0, |then| then.elapsed().as_secs_f64());
        let mut counts = HashMap::new();
        self.running.clear();
        for program in &now.running {
            let (events, backlog) = (program.events(), program.backlog());
            let before = self.last.1.get(&program.id).copied().unwrap_or(events);
            counts.insert(program.id, events);
            let speed = if seconds > 0.0 { (events - before) as f64 / seconds } else { 0.0 };
            self.running.push(ProgramRow {
                label: Name(&program.name).to_string(),
                events,
                speed: Ok(speed as u64),
                waiting: backlog.bytes as u64,
                connections: backlog.connections,
            });
        }
        self.last.1 = counts;
    }

    fn rows(&self, pane: Pane) -> usize {
        match pane {
            Pane::Programs => self.running.len() + self.over.len(),
            Pane::Properties => self.properties.len(),
            Pane::Findings => self.findings.len(),
            Pane::Messages => self.messages.len(),
        }
    }

    fn selected(&self, pane: Pane) -> Option<usize> {
        let at = self.at[pane as usize]?;
        self.rows(pane).checked_sub(1).map(|last| at.min(last))
    }

    fn select(&mut self, pane: Pane, row: usize) {
        self.at[pane as usize] = Some(row);
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Wish {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let pane = PANES.iter().position(|pane| *pane == self.pane).unwrap_or(0);
        let (rows, at) = (self.rows(self.pane), self.selected(self.pane).unwrap_or(0));
        let was_open = self.shows_finding || self.shows_help;
        match key.code {
            KeyCode::Char('c') if is_control => return Wish::Stop,
            KeyCode::Char('q') => return Wish::Stop,
            KeyCode::Esc => (self.shows_finding, self.shows_help) = (false, false),
            KeyCode::Char('?') => self.shows_help = !self.shows_help,
            KeyCode::Enter if was_open => (self.shows_finding, self.shows_help) = (false, false),
            KeyCode::Enter => self.shows_finding = self.pane == Pane::Findings && rows > 0,
            KeyCode::Tab | KeyCode::Right => self.pane = PANES[(pane + 1) % PANES.len()],
            KeyCode::BackTab | KeyCode::Left => {
                self.pane = PANES[(pane + PANES.len() - 1) % PANES.len()];
            }
            KeyCode::Down | KeyCode::Char('j') => {
                self.select(self.pane, (at + 1).min(rows.saturating_sub(1)));
            }
            KeyCode::Up | KeyCode::Char('k') => self.select(self.pane, at.saturating_sub(1)),
            KeyCode::PageDown => self.select(self.pane, (at + 10).min(rows.saturating_sub(1))),
            KeyCode::PageUp => self.select(self.pane, at.saturating_sub(10)),
            KeyCode::Home | KeyCode::Char('g') => self.select(self.pane, 0),
            KeyCode::End | KeyCode::Char('G') => self.select(self.pane, rows.saturating_sub(1)),
            _ => {}
        }
        Wish::None
    }

    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let properties = (self.properties.len() as u16).saturating_add(2).min(8);
        let [top, programs, second, findings, messages, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Fill(2),
            Constraint::Length(properties),
            Constraint::Fill(3),
            Constraint::Fill(2),
            Constraint::Length(1),
        ])
        .areas(area);
        self.draw_summary(frame, top);
        self.draw_programs(frame, programs);
        self.draw_properties(frame, second);
        self.draw_findings(frame, findings);
        self.draw_messages(frame, messages);
        let help = match self.is_stopping {
            true => "waiting for the verdicts on what arrived",
            false => "q end  Tab next part  ↑ ↓ scroll  Enter finding in full  ? help",
        };
        let dim = Style::new().add_modifier(Modifier::DIM);
        frame.render_widget(Paragraph::new(help).style(dim), keys);
        if self.shows_help {
            draw_window(frame, area, "Help", HELP);
        } else if self.shows_finding
            && let Some(row) = self.selected(Pane::Findings).and_then(|at| self.findings.get(at))
        {
            let FindingRow { program, kind, property, message } = row;
            let text = format!("{kind} {property}\n{program}\n\n{message}");
            draw_window(frame, area, "Finding", &text);
        }
    }

    fn draw_summary(&self, frame: &mut Frame<'_>, area: Rect) {
        let speed: u64 = self.running.iter().filter_map(|row| row.speed.as_ref().ok()).sum();
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let colour = if self.finding_count > 0 { Color::Red } else { Color::Green };
        let line = Line::from(vec![
            Span::styled("foresee observe ", bold),
            Span::raw(self.addresses.join(" ")),
            Span::raw(format!("  {} running", self.running.len())),
            Span::raw(format!("  {} over", HumanCount(self.over_count))),
            Span::raw(format!("  {} events/s", HumanCount(speed))),
            Span::styled(
                format!("  {}", count(HumanCount(self.finding_count), "finding")),
                bold.fg(colour),
            ),
        ]);
        frame.render_widget(Paragraph::new(line), area);
    }

    /// The rows of a list that can be seen, the one at hand among them.
    fn window(&mut self, pane: Pane, area: Rect) -> Range<usize> {
        let height = usize::from(area.height.saturating_sub(2)).max(1);
        let (rows, at) = (self.rows(pane), self.selected(pane).unwrap_or(0));
        let first = self.first[pane as usize].min(rows.saturating_sub(height));
        let first = first.min(at).max((at + 1).saturating_sub(height));
        self.first[pane as usize] = first;
        first..(first + height).min(rows)
    }

    /// Draws the rows of a list that can be seen, of which `first` is the first.
    fn draw_table(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        (pane, title): (Pane, &str),
        (first, rows): (usize, Vec<Row<'static>>),
        widths: &[Constraint],
    ) {
        let is_here = self.pane == pane;
        let border = match is_here {
            true => Style::new().fg(Color::Cyan),
            false => Style::new().add_modifier(Modifier::DIM),
        };
        let block = Block::bordered().title(format!(" {title} ")).border_style(border);
        let marked = Style::new().add_modifier(Modifier::REVERSED);
        let table =
            Table::new(rows, widths.iter().copied()).block(block).row_highlight_style(marked);
        let at = self.selected(pane).filter(|_| is_here).map(|at| at - first);
        frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(at));
    }

    fn draw_programs(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let seen = self.window(Pane::Programs, area);
        let rows = self.running.iter().chain(&self.over).skip(seen.start).take(seen.len());
        let rows = rows.map(|row| {
            let (speed, style) = match &row.speed {
                Ok(speed) => (format!("{}/s", HumanCount(*speed)), Style::new()),
                Err(how) => (how.clone(), Style::new().add_modifier(Modifier::DIM)),
            };
            Row::new([
                Cell::new(row.label.clone()),
                Cell::new(count(HumanCount(row.events), "event")),
                Cell::new(speed),
                Cell::new(format!("{} waiting", HumanBytes(row.waiting))),
                Cell::new(format!("{} connections", row.connections)),
            ])
            .style(style)
        });
        let widths = [
            Constraint::Min(16),
            Constraint::Length(18),
            Constraint::Length(20),
            Constraint::Length(18),
            Constraint::Length(14),
        ];
        let rows = (seen.start, rows.collect());
        self.draw_table(frame, area, (Pane::Programs, "Programs"), rows, &widths);
    }

    fn draw_properties(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let seen = self.window(Pane::Properties, area);
        let rows =
            self.properties.iter().skip(seen.start).take(seen.len()).map(|(name, findings)| {
                let (said, style) = match findings {
                    0 => ("nothing found yet".to_owned(), Style::new()),
                    n => (count(HumanCount(*n), "finding"), Style::new().fg(Color::Red)),
                };
                Row::new([Cell::new(name.clone()), Cell::new(said).style(style)])
            });
        let rows = (seen.start, rows.collect());
        let widths = [Constraint::Fill(1), Constraint::Length(24)];
        self.draw_table(frame, area, (Pane::Properties, "Properties"), rows, &widths);
    }

    fn draw_findings(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let seen = self.window(Pane::Findings, area);
        let rows = self.findings.range(seen.clone()).map(|row| {
            Row::new([
                Cell::new(row.kind.clone()).style(Style::new().fg(Color::Red)),
                Cell::new(row.property.clone()),
                Cell::new(row.program.clone()),
                Cell::new(row.message.clone()),
            ])
        });
        let rows = (seen.start, rows.collect());
        let widths =
            [Constraint::Length(10), Constraint::Fill(2), Constraint::Fill(2), Constraint::Fill(4)];
        self.draw_table(frame, area, (Pane::Findings, "Findings"), rows, &widths);
    }

    fn draw_messages(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let seen = self.window(Pane::Messages, area);
        let rows =
            self.messages.range(seen.clone()).map(|line| Row::new([Cell::new(line.clone())]));
        let rows = (seen.start, rows.collect());
        let widths = [Constraint::Fill(1)];
        self.draw_table(frame, area, (Pane::Messages, "Messages and verdicts"), rows, &widths);
    }
}

const HELP: &str = "\
q, Ctrl-C       end: every program gets its verdict on what arrived
Tab, ← →        the next part of the screen
↑ ↓, j k        one row
PgUp PgDn       ten rows
Home End, g G   the first and the last row
Enter           a finding in full
Esc             closes a window
?               this help

What is under “Messages and verdicts” is printed once more at the end.";

/// A window in the middle of the screen.
fn draw_window(frame: &mut Frame<'_>, area: Rect, title: &str, text: &str) {
    let width = area.width.saturating_sub(4).min(76);
    let height = area.height.saturating_sub(2).min(14);
    let x = area.x + (area.width - width) / 2;
    let y = area.y + (area.height - height) / 2;
    let window = Rect { x, y, width, height };
    let block = Block::bordered().title(format!(" {title} "));
    let text = Paragraph::new(text.to_owned()).wrap(Wrap { trim: false }).block(block);
    frame.render_widget(Clear, window);
    frame.render_widget(text, window);
}

/// The terminal, while the screen is shown, and what is on it.
pub(crate) struct Screen(Mutex<Inner>);

struct Inner {
    state: State,
    /// `None` after the end.
    terminal: Option<DefaultTerminal>,
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn open(properties: impl Iterator<Item = String>) -> anyhow::Result<Screen> {
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        ensure!(is_terminal, "--tui needs a terminal for its input and output");
        let terminal = ratatui::try_init().context("cannot use the terminal for --tui")?;
        let inner = Inner { state: State::new(properties), terminal: Some(terminal) };
        Ok(Screen(Mutex::new(inner)))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn listening(&self, address: String) {
        self.inner().state.addresses.push(address);
    }

    pub(crate) fn finding(&self, program: &str, kind: &str, property: &str, message: &str) {
        self.inner().state.finding(program, kind, property, message);
    }

    pub(crate) fn over(&self, label: &str, events: u64, how: String) {
        self.inner().state.over(label, events, how);
    }

    /// Shows a message; false if the screen is closed.
    pub(crate) fn message(&self, text: &str) -> bool {
        let mut inner = self.inner();
        let is_open = inner.terminal.is_some();
        if is_open {
            inner.state.message(text);
        }
        is_open
    }

    /// Draws everything, and does what was typed. A terminal that is gone ends the command.
    pub(crate) fn show(&self, now: &Listening) -> Wish {
        let mut inner = self.inner();
        let Inner { state, terminal } = &mut *inner;
        let Some(terminal) = terminal else { return Wish::None };
        state.now(now);
        while event::poll(Duration::ZERO).unwrap_or(false) {
            match event::read() {
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    if state.key(key) == Wish::Stop {
                        return Wish::Stop;
                    }
                }
                Ok(_) => {}
                Err(_) => return Wish::Stop,
            }
        }
        match terminal.draw(|frame| state.draw(frame)) {
            Ok(_) => Wish::None,
            Err(_) => Wish::Stop,
        }
    }

    /// Runs something that prints on the terminal, which then has its old content.
    pub(crate) fn around<T>(&self, print: impl FnOnce() -> T) -> T {
        let mut inner = self.inner();
        if inner.terminal.take().is_none() {
            return print();
        }
        ratatui::restore();
        let printed = print();
        inner.terminal = ratatui::try_init().ok();
        printed
    }

    /// Gives the terminal back, and prints the messages: they would be lost with the screen.
    pub(crate) fn close(&self) {
        let mut inner = self.inner();
        let Inner { state, terminal } = &mut *inner;
        if let Some(mut open) = terminal.take() {
            state.is_stopping = true;
            let _ = open.draw(|frame| state.draw(frame));
            ratatui::restore();
            if state.dropped > 0 {
                output::note(&format!(
                    "the first {} lines are not kept; --output FILE has all",
                    state.dropped
                ));
            }
            let lines: Vec<String> = state.messages.drain(..).collect();
            if !lines.is_empty() {
                // Who closed the output does not want them.
                let _ = output::print(&format!("{}\n", lines.join("\n")));
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn shown(state: &mut State, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| state.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
        (0..height).map(row).collect()
    }

    fn typed(state: &mut State, code: KeyCode) -> Wish {
        state.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn full() -> State {
        let mut state = State::new(["safe_landing", "level"].into_iter().map(str::to_owned));
        state.addresses.push("unix:/run/foresee.sock".to_owned());
        state.running.push(ProgramRow {
            label: "tower".to_owned(),
            events: 1_234_567,
            speed: Ok(89_000),
            waiting: 2048,
            connections: 2,
        });
        state.over("pilot [00112233]", 12, "nothing found".to_owned());
        for i in 0..30 {
            state.finding(
                "tower",
                "PREDICTED",
                "safe_landing",
                &format!("message {i} of a tower that says a lot, and more of it"),
            );
        }
        state.message("observing on unix:/run/foresee.sock\ntower: connected");
        state
    }

    fn has(screen: &[String], text: &str) -> bool {
        screen.iter().any(|row| row.contains(text))
    }

    #[test]
    fn everything_is_on_the_screen() {
        let screen = shown(&mut full(), 120, 40);
        for text in [
            "1 running  1 over  89,000 events/s  30 findings",
            "1,234,567 events",
            "2.00 KiB waiting",
            "pilot [00112233]",
            "nothing found",
            "30 findings",
            "level",
            "message 29",
            "tower: connected",
            "q end",
        ] {
            assert!(has(&screen, text), "{text}\n{}", screen.join("\n"));
        }
        let narrow = shown(&mut full(), 100, 40);
        let is_cut = has(&narrow, "message 29 of") && !has(&narrow, "more of it");
        assert!(is_cut, "{}", narrow.join("\n"));
    }

    #[test]
    fn keys_move_open_and_end() {
        let mut state = full();
        assert_eq!(state.selected(Pane::Findings), Some(29));
        typed(&mut state, KeyCode::Home);
        typed(&mut state, KeyCode::Down);
        let first = shown(&mut state, 100, 40);
        assert!(has(&first, "message 1 of"), "{}", first.join("\n"));
        typed(&mut state, KeyCode::Enter);
        assert!(has(&shown(&mut state, 100, 40), "more of it"));
        // New findings do not take away the one that is read.
        state.finding("tower", "OBSERVED", "other", "new");
        assert_eq!(state.selected(Pane::Findings), Some(1));
        typed(&mut state, KeyCode::Esc);
        assert!(!has(&shown(&mut state, 100, 40), "more of it"));
        typed(&mut state, KeyCode::Tab);
        assert_eq!(state.pane, Pane::Messages);
        typed(&mut state, KeyCode::Tab);
        assert_eq!(state.pane, Pane::Programs);
        typed(&mut state, KeyCode::BackTab);
        assert_eq!(state.pane, Pane::Messages);
        typed(&mut state, KeyCode::Char('?'));
        assert!(has(&shown(&mut state, 100, 40), "this help"));
        assert_eq!(typed(&mut state, KeyCode::Char('q')), Wish::Stop);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(state.key(interrupt), Wish::Stop);
        assert_eq!(typed(&mut state, KeyCode::Char('c')), Wish::None);
    }

    #[test]
    fn every_size_can_be_drawn() {
        let mut state = full();
        for shows in [false, true] {
            (state.shows_finding, state.shows_help) = (shows, shows);
            for (width, height) in [(1, 1), (3, 2), (10, 5), (40, 10), (300, 3), (5, 100)] {
                shown(&mut state, width, height);
            }
        }
        // Nothing at all, with keys that move.
        let mut empty = State::new(std::iter::empty());
        for code in [KeyCode::Down, KeyCode::Up, KeyCode::PageDown, KeyCode::End, KeyCode::Enter] {
            typed(&mut empty, code);
            shown(&mut empty, 80, 24);
        }
    }

    #[test]
    fn old_lines_make_room() {
        let mut state = State::new(std::iter::empty());
        for i in 0..KEPT + 5 {
            state.message(&format!("line {i}"));
            state.finding("p", "OBSERVED", "q", "m");
        }
        assert_eq!((state.messages.len(), state.dropped), (KEPT, 5));
        assert_eq!((state.findings.len(), state.finding_count), (KEPT, KEPT as u64 + 5));
        assert!(has(&shown(&mut state, 60, 30), &format!("line {}", KEPT + 4)));
    }
}
