//! The numbers of LLVM's bitcode format: block ids and record codes, grouped by block.

/// Block ids.
pub mod blocks {
    pub const MODULE: u32 = 8;
    pub const PARAM_ATTRIBUTES: u32 = 9;
    pub const ATTRIBUTE_GROUPS: u32 = 10;
    pub const CONSTANTS: u32 = 11;
    pub const FUNCTION: u32 = 12;
    pub const IDENTIFICATION: u32 = 13;
    pub const VALUE_SYMTAB: u32 = 14;
    pub const METADATA: u32 = 15;
    pub const METADATA_ATTACHMENT: u32 = 16;
    pub const TYPES: u32 = 17;
    pub const OPERAND_BUNDLE_TAGS: u32 = 21;
    pub const STRTAB: u32 = 23;
    pub const SYNC_SCOPE_NAMES: u32 = 26;
}

/// Records of the module block.
pub mod module {
    pub const VERSION: u32 = 1;
    pub const TRIPLE: u32 = 2;
    pub const DATA_LAYOUT: u32 = 3;
    pub const ASM: u32 = 4;
    pub const SECTION_NAME: u32 = 5;
    pub const GLOBAL: u32 = 7;
    pub const FUNCTION: u32 = 8;
    pub const ALIAS_OLD: u32 = 9;
    pub const GC_NAME: u32 = 11;
    pub const COMDAT: u32 = 12;
    pub const ALIAS: u32 = 14;
    pub const SOURCE_FILENAME: u32 = 16;
    pub const IFUNC: u32 = 18;
}

/// Records of the type block.
pub mod types {
    pub const NUM_ENTRY: u32 = 1;
    pub const VOID: u32 = 2;
    pub const FLOAT: u32 = 3;
    pub const DOUBLE: u32 = 4;
    pub const LABEL: u32 = 5;
    pub const OPAQUE: u32 = 6;
    pub const INTEGER: u32 = 7;
    pub const POINTER: u32 = 8;
    pub const HALF: u32 = 10;
    pub const ARRAY: u32 = 11;
    pub const VECTOR: u32 = 12;
    pub const X86_FP80: u32 = 13;
    pub const FP128: u32 = 14;
    pub const PPC_FP128: u32 = 15;
    pub const METADATA: u32 = 16;
    pub const X86_MMX: u32 = 17;
    pub const STRUCT_ANON: u32 = 18;
    pub const STRUCT_NAME: u32 = 19;
    pub const STRUCT_NAMED: u32 = 20;
    pub const FUNCTION: u32 = 21;
    pub const TOKEN: u32 = 22;
    pub const BFLOAT: u32 = 23;
    pub const X86_AMX: u32 = 24;
    pub const OPAQUE_POINTER: u32 = 25;
    pub const TARGET_TYPE: u32 = 26;
    pub const BYTE: u32 = 27;
}

/// Records of constants blocks.
pub mod constants {
    pub const SET_TYPE: u32 = 1;
    pub const NULL: u32 = 2;
    pub const UNDEF: u32 = 3;
    pub const INTEGER: u32 = 4;
    pub const WIDE_INTEGER: u32 = 5;
    pub const FLOAT: u32 = 6;
    pub const AGGREGATE: u32 = 7;
    pub const STRING: u32 = 8;
    pub const CSTRING: u32 = 9;
    pub const BINARY: u32 = 10;
    pub const CAST: u32 = 11;
    pub const GEP_OLD: u32 = 12;
    pub const SELECT: u32 = 13;
    pub const EXTRACT_ELEMENT: u32 = 14;
    pub const INSERT_ELEMENT: u32 = 15;
    pub const SHUFFLE: u32 = 16;
    pub const COMPARE: u32 = 17;
    pub const SHUFFLE_EX: u32 = 19;
    pub const GEP_INBOUNDS: u32 = 20;
    pub const BLOCK_ADDRESS: u32 = 21;
    pub const DATA: u32 = 22;
    pub const INLINE_ASM_OLD2: u32 = 23;
    pub const GEP_INRANGE_INDEX: u32 = 24;
    pub const UNARY: u32 = 25;
    pub const POISON: u32 = 26;
    pub const DSO_LOCAL_EQUIVALENT: u32 = 27;
    pub const INLINE_ASM_OLD3: u32 = 28;
    pub const NO_CFI: u32 = 29;
    pub const INLINE_ASM: u32 = 30;
    pub const GEP_INRANGE: u32 = 31;
    pub const GEP: u32 = 32;
    pub const PTRAUTH: u32 = 33;
    pub const PTRAUTH2: u32 = 34;
}

/// Records of function blocks.
pub mod function {
    pub const DECLARE_BLOCKS: u32 = 1;
    pub const BINARY: u32 = 2;
    pub const CAST: u32 = 3;
    pub const SELECT_OLD: u32 = 5;
    pub const EXTRACT_ELEMENT: u32 = 6;
    pub const INSERT_ELEMENT: u32 = 7;
    pub const SHUFFLE: u32 = 8;
    pub const COMPARE: u32 = 9;
    pub const RETURN: u32 = 10;
    pub const BRANCH: u32 = 11;
    pub const SWITCH: u32 = 12;
    pub const INVOKE: u32 = 13;
    pub const UNREACHABLE: u32 = 15;
    pub const PHI: u32 = 16;
    pub const ALLOCA: u32 = 19;
    pub const LOAD: u32 = 20;
    pub const VA_ARG: u32 = 23;
    pub const EXTRACT_VALUE: u32 = 26;
    pub const INSERT_VALUE: u32 = 27;
    pub const COMPARE2: u32 = 28;
    pub const SELECT: u32 = 29;
    pub const INDIRECT_BRANCH: u32 = 31;
    pub const DEBUG_LOC_AGAIN: u32 = 33;
    pub const CALL: u32 = 34;
    pub const DEBUG_LOC: u32 = 35;
    pub const FENCE: u32 = 36;
    pub const ATOMIC_RMW_OLD: u32 = 38;
    pub const RESUME: u32 = 39;
    pub const LOAD_ATOMIC: u32 = 41;
    pub const GEP: u32 = 43;
    pub const STORE: u32 = 44;
    pub const STORE_ATOMIC: u32 = 45;
    pub const CMPXCHG: u32 = 46;
    pub const LANDING_PAD: u32 = 47;
    pub const CLEANUP_RET: u32 = 48;
    pub const CATCH_RET: u32 = 49;
    pub const CATCH_PAD: u32 = 50;
    pub const CLEANUP_PAD: u32 = 51;
    pub const CATCH_SWITCH: u32 = 52;
    pub const OPERAND_BUNDLE: u32 = 55;
    pub const UNARY: u32 = 56;
    pub const CALL_BRANCH: u32 = 57;
    pub const FREEZE: u32 = 58;
    pub const ATOMIC_RMW: u32 = 59;
    pub const BLOCK_ADDRESS_USERS: u32 = 60;
    /// The first of the debug records.
    pub const DEBUG_RECORD_FIRST: u32 = 61;
    /// The last known debug record; none of them affects execution.
    pub const DEBUG_RECORD_LAST: u32 = 66;
}

/// Records of metadata blocks.
pub mod metadata {
    pub const STRING_OLD: u32 = 1;
    pub const VALUE: u32 = 2;
    pub const NODE: u32 = 3;
    pub const NAME: u32 = 4;
    pub const DISTINCT_NODE: u32 = 5;
    pub const KIND: u32 = 6;
    pub const LOCATION: u32 = 7;
    pub const NAMED_NODE: u32 = 10;
    pub const ATTACHMENT: u32 = 11;
    pub const SUBRANGE: u32 = 13;
    pub const ENUMERATOR: u32 = 14;
    pub const BASIC_TYPE: u32 = 15;
    pub const FILE: u32 = 16;
    pub const COMPILE_UNIT: u32 = 20;
    pub const DERIVED_TYPE: u32 = 17;
    pub const COMPOSITE_TYPE: u32 = 18;
    pub const SUBPROGRAM: u32 = 21;
    pub const LEXICAL_BLOCK: u32 = 22;
    pub const LEXICAL_BLOCK_FILE: u32 = 23;
    pub const NAMESPACE: u32 = 24;
    pub const GLOBAL_VAR: u32 = 27;
    pub const EXPRESSION: u32 = 29;
    pub const STRINGS: u32 = 35;
    pub const GLOBAL_DECL_ATTACHMENT: u32 = 36;
    pub const GLOBAL_VAR_EXPR: u32 = 37;
    pub const INDEX_OFFSET: u32 = 38;
    pub const INDEX: u32 = 39;
}

/// Kinds of attributes.
pub mod attributes {
    pub const ALIGN: u64 = 1;
    pub const BYVAL: u64 = 3;
    pub const MINSIZE: u64 = 6;
    pub const NAKED: u64 = 7;
    pub const NEST: u64 = 8;
    pub const NOALIAS: u64 = 9;
    pub const NOINLINE: u64 = 14;
    pub const OPTNONE: u64 = 37;
    pub const NORETURN: u64 = 17;
    pub const NOUNWIND: u64 = 18;
    pub const RETURNED: u64 = 22;
    pub const RETURNS_TWICE: u64 = 23;
    pub const SIGNEXT: u64 = 24;
    pub const STACK_ALIGN: u64 = 25;
    pub const SRET: u64 = 29;
    pub const ZEROEXT: u64 = 34;
    pub const COLD: u64 = 36;
    pub const INALLOCA: u64 = 38;
    pub const NONNULL: u64 = 39;
    pub const DEREFERENCEABLE: u64 = 41;
    pub const STRICTFP: u64 = 54;
    pub const WILLRETURN: u64 = 61;
    pub const NOUNDEF: u64 = 68;
    pub const BYREF: u64 = 69;
    pub const ELEMENTTYPE: u64 = 77;
}
