//! The objects of a process, and their names.

use super::dictionary::Dictionary;
use super::record::{Kind, NO_OBJECT, Records};
use super::{HashMap, HashSet, JvmError, JvmLog};

/// The channel of everything whose order is not known in detail.
pub(super) const GLOBAL: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Object {
    class: u32,
    /// Which of the objects of its class it is, from one.
    number: u32,
    /// Which of all objects it is, from one.
    overall: u32,
}

/// All objects that records mention.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    all: HashMap<u64, Object>,
    /// How many there have been.
    count: u32,
    per_class: HashMap<u32, u32>,
    /// The field in which an array was first seen: its object and the field's number.
    holders: HashMap<u64, (u64, u32)>,
    /// The objects with which others were shared that several threads use.
    crossing: HashSet<u64>,
    /// Whether the program is still running, so that more may come.
    is_growing: bool,
}

/// Collects what objects were shared with, and which of them a thread uses that did not describe them.
fn sharing(
    records: &mut Records,
    number: u32,
    with: &mut HashMap<u64, u64>,
    foreign: &mut HashSet<u64>,
) -> Result<(), JvmError> {
    let mut pending = None;
    while let Some(record) = records.next()? {
        if record.kind == Kind::Object {
            with.extend(pending.take().map(|other| (record.object, other)));
        } else if record.described().is_some_and(|(thread, _)| thread != number) {
            foreign.insert(record.object);
        }
        if record.kind == Kind::SharedWith {
            pending = Some(record.object);
        }
    }
    Ok(())
}

impl Objects {
    /// Reads what the threads of a process say about objects.
    pub(super) fn read(log: &JvmLog) -> Result<Objects, JvmError> {
        let mut objects = Objects::default();
        // What each object was shared with, and those that others than the thread that described them use.
        let (mut with, mut foreign) = (HashMap::default(), HashSet::default());
        for number in log.dictionary.threads.keys() {
            let path = log.folder.join(format!("{number}.log"));
            objects.see(&mut Records::open(&path)?, &mut None, &log.dictionary)?;
            if log.dictionary.has_locals {
                sharing(&mut Records::open(&path)?, *number, &mut with, &mut foreign)?;
            }
        }
        let crossing = foreign.iter().filter_map(|object| with.get(object)).copied();
        objects.crossing = crossing.chain(foreign.iter().copied()).collect();
        Ok(objects)
    }

    /// Whether several threads may use what was shared with this object.
    pub(super) fn is_crossing(&self, object: u64) -> bool {
        self.is_growing || self.crossing.contains(&object)
    }

    /// The objects of a program that is still running.
    pub(super) fn growing() -> Objects {
        Objects { is_growing: true, ..Objects::default() }
    }

    /// Reads the records of a thread that have not been read. `last` is the object that it mentioned last, if that may
    /// yet turn out to have a number already.
    pub(super) fn see(
        &mut self,
        records: &mut Records,
        last: &mut Option<u64>,
        dictionary: &Dictionary,
    ) -> Result<(), JvmError> {
        let mut values = Vec::new();
        while let Some(record) = records.next()? {
            if record.kind == Kind::Object && record.value as u32 == NO_OBJECT {
                if last.take() == Some(record.object) {
                    self.remove(record.object);
                }
                continue;
            }
            *last = None;
            match record.kind {
                Kind::Object => {
                    self.add(record.object, record.value as u32);
                    *last = Some(record.object);
                }
                Kind::Read | Kind::Write | Kind::VolatileRead | Kind::VolatileWrite
                    if record.value_type == b'L' && record.value != 0 =>
                {
                    // Another thread may be the one that says what it is.
                    let may_be_array = !self.all.contains_key(&record.value)
                        || self.is_array(record.value, dictionary);
                    if let Some(&key) = dictionary.keys.get(&record.site)
                        && may_be_array
                        && !self.holders.contains_key(&record.value)
                    {
                        values.push((record.value, (record.object, key)));
                    }
                }
                _ => {}
            }
        }
        for (value, holder) in values {
            if self.is_array(value, dictionary) {
                self.holders.entry(value).or_insert(holder);
            }
        }
        Ok(())
    }

    fn add(&mut self, id: u64, class: u32) {
        if self.all.contains_key(&id) {
            return;
        }
        let count = self.per_class.entry(class).or_default();
        *count += 1;
        self.count += 1;
        let overall = self.count;
        self.all.insert(id, Object { class, number: *count, overall });
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Another thread was first to number the object, so this number means nothing.
    fn remove(&mut self, id: u64) {
        let Some(object) = self.all.remove(&id) else { return };
        self.count -= u32::from(self.count == object.overall);
        if let Some(count) = self.per_class.get_mut(&object.class) {
            *count -= u32::from(*count == object.number);
        }
    }

    /// Whether the object shows that another one was named after its class too early: while a program runs, the first object
    /// is named before there is a second.
    pub(super) fn is_one_more(&self, id: u64) -> bool {
        self.is_growing && self.all.get(&id).is_some_and(|object| object.number > 1)
    }

    /// Whether the name of its class is enough for an object.
    fn is_only(&self, object: &Object) -> bool {
        match self.is_growing {
            true => object.number == 1,
            false => self.per_class.get(&object.class) == Some(&1),
        }
    }

    /// The name of an object's class.
    pub(super) fn class<'d>(&self, id: u64, dictionary: &'d Dictionary) -> &'d str {
        let object = self.all.get(&id);
        let class = object.and_then(|object| dictionary.classes.get(&u64::from(object.class)));
        class.map_or("object", String::as_str)
    }

    fn is_array(&self, id: u64, dictionary: &Dictionary) -> bool {
        self.class(id, dictionary).ends_with("[]")
    }

    /// A number that stands for the object as a value.
    pub(super) fn number(&self, id: u64) -> i64 {
        self.all.get(&id).map_or(0, |object| i64::from(object.overall))
    }

    /// `bank.Account`, or `bank.Account#2` where there are several; a class is `bank.Bank.class`; an array has the name of the
    /// field that it was first seen in.
    pub(super) fn name(&self, id: u64, dictionary: &Dictionary) -> String {
        if id == GLOBAL {
            return "the JDK".to_owned();
        }
        let class = self.class(id, dictionary);
        if class == "java.lang.Class"
            && let Some(text) = dictionary.texts.get(&id)
        {
            return text.clone();
        }
        let Some(object) = self.all.get(&id) else { return format!("object#{id}") };
        if let Some(&(holder, key)) = self.holders.get(&id)
            && let Some(field) = dictionary.fields.get(&key)
        {
            let holder = match field.is_static {
                true => field.class.clone(),
                // A field of an array's element is not followed further.
                false => self.plain_name(holder, dictionary),
            };
            return format!("{holder}.{}", field.name);
        }
        match self.is_only(object) && !class.ends_with("[]") {
            true => class.to_owned(),
            false => format!("{class}#{}", object.number),
        }
    }

    fn plain_name(&self, id: u64, dictionary: &Dictionary) -> String {
        let class = self.class(id, dictionary);
        match self.all.get(&id) {
            Some(object) if !self.is_only(object) => format!("{class}#{}", object.number),
            _ => class.to_owned(),
        }
    }

    /// Whether the object is one of `java.util.concurrent.atomic` that holds a single value.
    pub(super) fn is_single(&self, id: u64, dictionary: &Dictionary) -> bool {
        let class = self.class(id, dictionary);
        class.starts_with("java.util.concurrent.atomic.") && !class.ends_with("Array")
    }
}
