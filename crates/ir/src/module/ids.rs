//! Typed indices of the flat tables of a module.

use std::num::NonZeroU32;

/// Declares an index type. It stores the index plus one, so that `Option<Id>` takes four bytes.
macro_rules! id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// Returns the id of the entry at `index`. The reader keeps tables far below `u32::MAX`
            /// entries, so saturating here never makes two ids equal.
            #[inline]
            pub fn new(index: usize) -> Self {
                let plus_one = u32::try_from(index).unwrap_or(u32::MAX - 1).saturating_add(1);
                Self(NonZeroU32::new(plus_one).unwrap_or(NonZeroU32::MIN))
            }

            /// Returns the index in the table to which this id belongs.
            #[inline]
            pub fn index(self) -> usize {
                (self.0.get() - 1) as usize
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.index())
            }
        }
    };
}

id!(
    /// A type in [`TypeTable`](super::TypeTable).
    TypeId
);
id!(
    /// A constant in [`Module::constants`](super::Module::constants).
    ConstId
);
id!(
    /// A global variable in [`Module::globals`](super::Module::globals).
    GlobalId
);
id!(
    /// A function in [`Module::functions`](super::Module::functions).
    FunctionId
);
id!(
    /// An alias in [`Module::aliases`](super::Module::aliases).
    AliasId
);
id!(
    /// An indirect function in [`Module::ifuncs`](super::Module::ifuncs).
    IfuncId
);
id!(
    /// A comdat group in [`Module::comdats`](super::Module::comdats).
    ComdatId
);
id!(
    /// An inline assembly snippet in [`Module::inline_asms`](super::Module::inline_asms).
    InlineAsmId
);
id!(
    /// An attribute list in [`Module::attributes`](super::Module::attributes).
    AttributesId
);
id!(
    /// A basic block in [`Function::blocks`](super::Function::blocks).
    BlockId
);
id!(
    /// An instruction in [`Function::instructions`](super::Function::instructions).
    InstId
);
id!(
    /// A call in [`Function::calls`](super::Function::calls).
    CallId
);
id!(
    /// A source location in [`DebugInfo::locations`](crate::debug::DebugInfo::locations).
    LocId
);
