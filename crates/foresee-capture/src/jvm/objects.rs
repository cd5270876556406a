//! The objects of a process, and their names.

use super::dictionary::Dictionary;
use super::record::{Kind, Records};
use super::{HashMap, JvmError, JvmLog};

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

/// In place of a class: another thread was first to number the object.
const NO_OBJECT: u32 = u32::MAX;

/// All objects that records mention.
#[derive(Debug, Default)]
pub(super) struct Objects {
    all: HashMap<u64, Object>,
    per_class: HashMap<u32, u32>,
    /// The field in which an array was first seen: its object and the field's number.
    holders: HashMap<u64, (u64, u32)>,
}

impl Objects {
    /// Reads what the threads of a process say about objects.
    pub(super) fn read(log: &JvmLog) -> Result<Objects, JvmError> {
        let mut objects = Objects::default();
        let mut values = Vec::new();
        for number in log.dictionary.threads.keys() {
            let mut records = Records::open(&log.folder.join(format!("{number}.log")))?;
            // An object that may yet turn out to have a number already, and its class.
            let mut new: Option<(u64, u32)> = None;
            while let Some(record) = records.next()? {
                if record.kind == Kind::Object && record.value as u32 == NO_OBJECT {
                    new = new.filter(|&(id, _)| id != record.object);
                    continue;
                }
                if let Some((id, class)) = new.take() {
                    objects.add(id, class);
                }
                match record.kind {
                    Kind::Object => new = Some((record.object, record.value as u32)),
                    Kind::Read | Kind::Write | Kind::VolatileRead | Kind::VolatileWrite
                        if record.value_type == b'L' && record.value != 0 =>
                    {
                        // Another thread may be the one that says what it is.
                        let may_be_array = !objects.all.contains_key(&record.value)
                            || objects.is_array(record.value, &log.dictionary);
                        if let Some(&key) = log.dictionary.keys.get(&record.site)
                            && may_be_array
                            && !objects.holders.contains_key(&record.value)
                        {
                            values.push((record.value, (record.object, key)));
                        }
                    }
                    _ => {}
                }
            }
            if let Some((id, class)) = new {
                objects.add(id, class);
            }
            for (value, holder) in values.drain(..) {
                if objects.is_array(value, &log.dictionary) {
                    objects.holders.entry(value).or_insert(holder);
                }
            }
        }
        Ok(objects)
    }

    fn add(&mut self, id: u64, class: u32) {
        if self.all.contains_key(&id) {
            return;
        }
        let count = self.per_class.entry(class).or_default();
        *count += 1;
        let overall = self.all.len() as u32 + 1;
        self.all.insert(id, Object { class, number: *count, overall });
    }

    fn class<'d>(&self, id: u64, dictionary: &'d Dictionary) -> &'d str {
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
        match self.per_class.get(&object.class) {
            Some(1) if !class.ends_with("[]") => class.to_owned(),
            _ => format!("{class}#{}", object.number),
        }
    }

    fn plain_name(&self, id: u64, dictionary: &Dictionary) -> String {
        let class = self.class(id, dictionary);
        match self.all.get(&id) {
            Some(object) if self.per_class.get(&object.class) != Some(&1) => {
                format!("{class}#{}", object.number)
            }
            _ => class.to_owned(),
        }
    }

    /// Whether the object is one of `java.util.concurrent.atomic` that holds a single value.
    pub(super) fn is_single(&self, id: u64, dictionary: &Dictionary) -> bool {
        let class = self.class(id, dictionary);
        class.starts_with("java.util.concurrent.atomic.") && !class.ends_with("Array")
    }
}
