//! The debugging information of one ELF file, and how to get about in it.

use std::collections::HashMap;
use std::sync::Arc;

use gimli::{AttributeValue, DebuggingInformationEntry, Reader as _, UnitOffset};
use object::{Object, ObjectSection};

/// Sections are shared, so that several readers stand on one copy.
pub(super) type Reader = gimli::EndianArcSlice<gimli::RunTimeEndian>;
pub(super) type Unit = gimli::Unit<Reader>;
pub(super) type Entry = DebuggingInformationEntry<Reader>;
type Attribute = AttributeValue<Reader>;

/// An entry of the debugging information: its unit, by index, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Die {
    pub(super) unit: usize,
    pub(super) offset: UnitOffset,
}

/// All units of a file.
pub(super) struct Dwarf {
    pub(super) sections: Arc<gimli::Dwarf<Reader>>,
    pub(super) units: Vec<Unit>,
    /// Where units begin in `.debug_info`, ascending.
    starts: Vec<(usize, usize)>,
    /// Units that hold one type for others to share.
    signatures: HashMap<u64, Die>,
}

impl Dwarf {
    /// The debugging information of `file`; none if it has none. Units that cannot be read are
    /// left out: the others still name what they define.
    pub(super) fn load(file: &object::File<'_>) -> Option<Dwarf> {
        file.section_by_name(".debug_info").or_else(|| file.section_by_name(".zdebug_info"))?;
        let endian = match file.is_little_endian() {
            true => gimli::RunTimeEndian::Little,
            false => gimli::RunTimeEndian::Big,
        };
        let section = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
            let found = file.section_by_name(id.name());
            let data = found.and_then(|s| s.uncompressed_data().ok()).unwrap_or_default();
            Ok(Reader::new(Arc::from(data.as_ref()), endian))
        };
        let mut sections = gimli::Dwarf::load(section).ok()?;
        sections.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        let mut dwarf = Dwarf {
            sections: Arc::new(sections),
            units: Vec::new(),
            starts: Vec::new(),
            signatures: HashMap::new(),
        };
        let mut headers = dwarf.sections.units();
        while let Ok(Some(header)) = headers.next() {
            dwarf.add(header);
        }
        let mut headers = dwarf.sections.type_units();
        while let Ok(Some(header)) = headers.next() {
            dwarf.add(header);
        }
        Some(dwarf)
    }

    fn add(&mut self, header: gimli::UnitHeader<Reader>) {
        let Ok(unit) = self.sections.unit(header) else { return };
        let index = self.units.len();
        if let Some(gimli::DebugInfoOffset(start)) = unit.header.debug_info_offset() {
            self.starts.push((start, index));
        }
        if let gimli::UnitType::Type { type_signature, type_offset } = unit.header.type_() {
            let die = Die { unit: index, offset: type_offset };
            self.signatures.insert(type_signature.0, die);
        }
        self.units.push(unit);
    }

    pub(super) fn entry(&self, die: Die) -> Option<Entry> {
        self.units.get(die.unit)?.entry(die.offset).ok()
    }

    /// The entry that an attribute refers to, in whichever unit it is.
    pub(super) fn follow(&self, unit: usize, value: &Attribute) -> Option<Die> {
        match value {
            AttributeValue::UnitRef(offset) => Some(Die { unit, offset: *offset }),
            AttributeValue::DebugInfoRef(offset) => {
                let after = self.starts.partition_point(|&(start, _)| start <= offset.0);
                let (_, unit) = *self.starts.get(after.checked_sub(1)?)?;
                let offset = offset.to_unit_offset(&self.units[unit].header)?;
                Some(Die { unit, offset })
            }
            AttributeValue::DebugTypesRef(signature) => self.signatures.get(&signature.0).copied(),
            _ => None,
        }
    }

    /// The text of an attribute.
    pub(super) fn text(&self, unit: usize, entry: &Entry, at: gimli::DwAt) -> Option<String> {
        let text = self.sections.attr_string(&self.units[unit], entry.attr_value(at)?).ok()?;
        Some(text.to_string_lossy().ok()?.into_owned())
    }

    pub(super) fn number(&self, entry: &Entry, at: gimli::DwAt) -> Option<u64> {
        entry.attr_value(at)?.udata_value()
    }

    pub(super) fn flag(&self, entry: &Entry, at: gimli::DwAt) -> bool {
        matches!(entry.attr_value(at), Some(AttributeValue::Flag(true)))
    }

    /// The file that an entry was declared in, without folders.
    pub(super) fn file(&self, unit: usize, entry: &Entry) -> Option<String> {
        let index = match entry.attr_value(gimli::DW_AT_decl_file)? {
            AttributeValue::FileIndex(index) => index,
            value => value.udata_value()?,
        };
        let unit = &self.units[unit];
        let file = unit.line_program.as_ref()?.header().file(index)?;
        let path = self.sections.attr_string(unit, file.path_name()).ok()?;
        let path = path.to_string_lossy().ok()?.into_owned();
        Some(path.rsplit('/').next().unwrap_or(&path).to_owned())
    }

    /// The code of a function or block: where its parts begin and end.
    pub(super) fn code(&self, unit: usize, entry: &Entry) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        let Ok(mut ranges) = self.sections.die_ranges(&self.units[unit], entry) else {
            return found;
        };
        while let Ok(Some(range)) = ranges.next() {
            // Linkers leave zero or a tombstone for what they threw away.
            if range.begin != 0 && range.begin < range.end {
                found.push((range.begin, range.end));
            }
        }
        found
    }

    /// The address a variable has in the file, if it always is at that one.
    pub(super) fn fixed_address(&self, unit: usize, entry: &Entry) -> Option<u64> {
        let unit = &self.units[unit];
        let expression = entry.attr_value(gimli::DW_AT_location)?.exprloc_value()?;
        let mut operations = expression.operations(unit.encoding());
        let mut address = match operations.next().ok()?? {
            gimli::Operation::Address { address } => address,
            gimli::Operation::AddressIndex { index } => self.sections.address(unit, index).ok()?,
            _ => return None,
        };
        while let Some(operation) = operations.next().ok()? {
            match operation {
                gimli::Operation::PlusConstant { value } => address = address.checked_add(value)?,
                // A thread-local variable, a constant, or something stranger.
                _ => return None,
            }
        }
        // Linkers leave zero or a tombstone for what they threw away.
        (address != 0 && !unit.header.is_tombstone_address(address)).then_some(address)
    }
}
