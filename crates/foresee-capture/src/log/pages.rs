//! Tables with an entry for every eight bytes of memory that were accessed.

use super::HashMap;

/// Eight-byte granules on a page of memory.
pub(super) const PER_PAGE: usize = 512;

/// A table with one entry for each granule of the accessed pages.
#[derive(Debug)]
pub(super) struct Pages<T> {
    /// The index of each page.
    places: HashMap<u64, usize>,
    pages: Vec<Box<[T; PER_PAGE]>>,
    /// Recently used pages and their indices: most accesses are near an earlier one.
    recent: [(u64, usize); RECENT],
}

/// The number of pages that are found without a hash table.
const RECENT: usize = 256;

/// No page has this number.
const NO_PAGE: u64 = u64::MAX;

impl<T> Default for Pages<T> {
    fn default() -> Self {
        let recent = [(NO_PAGE, 0); RECENT];
        Pages { places: HashMap::default(), pages: Vec::new(), recent }
    }
}

fn slot(address: u64) -> usize {
    (address >> 3) as usize % PER_PAGE
}

impl<T: Copy + Default> Pages<T> {
    /// The entry of the granule that holds the byte at `address`.
    #[inline]
    pub(super) fn entry(&mut self, address: u64) -> &mut T {
        let place = self.find(address);
        self.at(place, address)
    }

    /// The index of the page with this address. Pages are numbered as they are first asked for.
    #[inline]
    pub(super) fn find(&mut self, address: u64) -> usize {
        let page = address >> 12;
        let (recent, place) = self.recent[page as usize % RECENT];
        if recent == page { place } else { self.place(page) }
    }

    /// The entry of an address on the page with this index.
    #[inline]
    pub(super) fn at(&mut self, place: usize, address: u64) -> &mut T {
        &mut self.pages[place][slot(address)]
    }

    /// All entries of the page with this number.
    pub(super) fn page(&mut self, page: u64) -> &mut [T; PER_PAGE] {
        let place = self.place(page);
        &mut self.pages[place]
    }

    /// The entry, without creating it.
    pub(super) fn get(&self, address: u64) -> Option<&T> {
        let place = *self.places.get(&(address >> 12))?;
        Some(&self.pages[place][slot(address)])
    }

    #[cold]
    fn place(&mut self, page: u64) -> usize {
        let place = *self.places.entry(page).or_insert_with(|| {
            self.pages.push(Box::new([T::default(); PER_PAGE]));
            self.pages.len() - 1
        });
        self.recent[page as usize % RECENT] = (page, place);
        place
    }

    /// The size of all pages in bytes.
    #[inline]
    pub(super) fn weight(&self) -> usize {
        self.pages.len() * size_of::<[T; PER_PAGE]>()
    }

    /// Changes the entries of a range of memory for which there are pages, in the order of their addresses.
    pub(super) fn within(&mut self, address: u64, size: u64, mut change: impl FnMut(&mut T)) {
        let (first, end) = (address & !7, address.saturating_add(size));
        let mut on = |page: u64, entries: &mut [T; PER_PAGE]| {
            let start = page << 12;
            let from = first.saturating_sub(start).min(1 << 12).div_ceil(8) as usize;
            let to = end.saturating_sub(start).min(1 << 12).div_ceil(8) as usize;
            if from < to {
                entries[from..to].iter_mut().for_each(&mut change);
            }
        };
        let pages = first >> 12..end.div_ceil(1 << 12);
        if pages.end.saturating_sub(pages.start) > self.places.len() as u64 {
            let within = self.places.iter().filter(|(page, _)| pages.contains(page));
            let mut within: Vec<(u64, usize)> =
                within.map(|(&page, &place)| (page, place)).collect();
            within.sort_unstable();
            for (page, place) in within {
                on(page, &mut self.pages[place]);
            }
        } else {
            for page in pages {
                if let Some(&place) = self.places.get(&page) {
                    on(page, &mut self.pages[place]);
                }
            }
        }
    }

    /// All pages, with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &[T; PER_PAGE])> {
        self.places().map(|(page, place)| (page, &*self.pages[place]))
    }

    /// The numbers of all pages, with their indices.
    pub(super) fn places(&self) -> impl Iterator<Item = (u64, usize)> {
        self.places.iter().map(|(&page, &place)| (page, place))
    }

    /// All entries of the page with this index.
    pub(super) fn page_at(&self, place: usize) -> &[T; PER_PAGE] {
        &self.pages[place]
    }
}
