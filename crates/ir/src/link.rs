//! Links modules into one, like a static linker: strong definitions override weak ones, common
//! symbols merge, comdat groups are taken from one module, local names are kept apart, and
//! appending arrays such as `llvm.global_ctors` are concatenated.

mod merge;
mod remap;
mod resolve;

use crate::module::Module;

/// Why modules cannot be linked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// There is nothing to link.
    #[error("no modules to link")]
    Nothing,
    /// Two modules have strong definitions of a symbol.
    #[error("`{name}` is defined in {first} and again in {second}")]
    Duplicate {
        /// The symbol.
        name: String,
        /// One module.
        first: String,
        /// The other module.
        second: String,
    },
    /// Members of a comdat group differ although they must be equal.
    #[error("the comdat group `{name}` in {first} does not match the one in {second}")]
    Comdat {
        /// The group.
        name: String,
        /// One module.
        first: String,
        /// The other module.
        second: String,
    },
    /// The address of the symbol is computed at load time.
    #[error("`{name}` in {module} is an ifunc; link a version of the program without ifuncs")]
    Ifunc {
        /// The symbol.
        name: String,
        /// The module of the symbol.
        module: String,
    },
    /// The modules have different data layouts.
    #[error("{first} and {second} were compiled for different data layouts")]
    DataLayout {
        /// One module.
        first: String,
        /// The other module.
        second: String,
    },
    /// An appending symbol is not an array.
    #[error("`{name}` in {module} cannot be joined with the ones of other modules")]
    Appending {
        /// The symbol.
        name: String,
        /// The module of the symbol.
        module: String,
    },
    /// The linked types have no layout.
    #[error("the types of the linked modules have no layout")]
    Types,
}

/// Links modules into one. Name and target are those of the first module.
pub fn link(mut modules: Vec<Module>) -> Result<Module, LinkError> {
    check(&modules)?;
    if modules.len() == 1 {
        return modules.pop().ok_or(LinkError::Nothing);
    }
    let resolution = resolve::resolve(&modules)?;
    merge::merge(modules, &resolution)
}

/// Returns the name of a module in messages.
fn module_name(module: &Module) -> String {
    if module.name.is_empty() {
        "a module without a name".into()
    } else {
        module.name.clone()
    }
}

fn check(modules: &[Module]) -> Result<(), LinkError> {
    let Some(first) = modules.first() else {
        return Err(LinkError::Nothing);
    };
    for module in modules {
        if let Some(ifunc) = module.ifuncs.first() {
            let name = ifunc.name.to_string();
            return Err(LinkError::Ifunc {
                name,
                module: module_name(module),
            });
        }
        if module.types.data_layout != first.types.data_layout {
            let (first, second) = (module_name(first), module_name(module));
            return Err(LinkError::DataLayout { first, second });
        }
    }
    Ok(())
}
