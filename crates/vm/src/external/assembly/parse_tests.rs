//! Tests of the parser of templates and constraints.

use super::*;

fn parsed(text: &str) -> Vec<Instruction> {
    template(text, false).expect("known").instructions
}

fn homes(text: &str) -> Vec<OperandHome> {
    let found = constraints(text).expect("known");
    found
        .into_iter()
        .map(|constraint| constraint.home)
        .collect()
}

#[test]
fn operands_are_found() {
    let found = constraints("={ax},=*m,{ax},r,~{memory},~{dirflag}").expect("known");
    assert_eq!(found.len(), 4);
    let home = OperandHome::General(0);
    assert_eq!(found[0], Constraint { output: true, home });
    let home = OperandHome::Memory;
    assert_eq!(found[1], Constraint { output: true, home });
    let home = OperandHome::Anywhere;
    assert_eq!(
        found[3],
        Constraint {
            output: false,
            home
        }
    );
    assert_eq!(homes("=r,=&r,0,rme,%1,rme")[4], OperandHome::Tied(1));
    assert_eq!(homes("={st},={ax},{st(1)},0")[2], OperandHome::Stack(1));
    assert_eq!(homes("r,{xmm3}")[1], OperandHome::Vector(3));
    assert_eq!(homes("r,!i,!i")[2], OperandHome::Target(1));
    assert_eq!(constraints("r,{ymm0}"), None);
}

#[test]
fn templates_are_taken_apart() {
    let found = parsed("lock ; cmpxchg $3, $1");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].name, "cmpxchg");
    assert_eq!(
        found[0].operands,
        [Operand::Argument(3, None), Operand::Argument(1, None)]
    );
    let found = parsed("mov $1, $0 ; lock ; orl $$0,(%rsp)");
    assert_eq!(found[1].operands[0], Operand::Immediate(0));
    assert!(matches!(found[1].operands[1], Operand::At(_)));
    let found = parsed("  xchg$(q$|$)  $(%$|$)rbx,${1:q}\n  cpuid");
    assert_eq!(found[0].name, "xchgq");
    let rbx = Operand::Named(register("rbx").expect("a register"));
    assert_eq!(found[0].operands[0], rbx);
    assert_eq!(found[0].operands[1], Operand::Argument(1, Some(64)));
    let found = parsed("/* one */ incl $0 # two; three\n  rep; stosb");
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].repeat, Some(Repeat::WhileEqual));
    assert_eq!(parsed("rep bsfl $1, $0")[0].name, "tzcntl");
}

#[test]
fn the_other_dialect_has_destinations_first() {
    let text = "mov ${0:q}, rbx\ncpuid\nmov eax, dword ptr [rdi + 4*${1} - 8]";
    let found = template(text, true).expect("known").instructions;
    assert_eq!(found[0].operands[1], Operand::Argument(0, Some(64)));
    let Operand::At(address) = &found[2].operands[0] else {
        panic!("{found:?}");
    };
    assert_eq!(address.distance, -8);
    let index = (Box::new(Operand::Argument(1, None)), 4);
    assert_eq!(address.index, Some(index));
}

#[test]
fn addresses_have_all_parts() {
    let at = |text: &str| match &parsed(&format!("mov {text}, $0"))[0].operands[0] {
        Operand::At(address) => address.clone(),
        other => panic!("{text}: {other:?}"),
    };
    let address = at("-0x10(%rax,%rbx,8)");
    assert_eq!(address.distance, -16);
    assert_eq!(address.index.expect("an index").1, 8);
    let address = at("${2:c}(${1:q})");
    assert_eq!(address.distance_argument, Some(2));
    assert_eq!(
        address.base.as_deref(),
        Some(&Operand::Argument(1, Some(64)))
    );
    for text in ["8+$1", "8$1", "$1+8", "${1:H}"] {
        let address = at(text);
        assert_eq!(address.distance, 8, "{text}");
        assert_eq!(address.base.as_deref(), Some(&Operand::Argument(1, None)));
    }
    for text in ["%fs:0", "%fs:(0)", "%fs:0x28"] {
        assert!(at(text).thread);
    }
    assert_eq!(at("(,%rcx,4)").base, None);
}

#[test]
fn labels_are_found_in_both_directions() {
    let text = "1: dec $0\n jnz 1b\n jmp 1f\n .Lend${:uid}:\n nop\n1: ret";
    let found = template(text, false).expect("known");
    assert_eq!(found.find("1b", 1), Some(0));
    assert_eq!(found.find("1f", 2), Some(4));
    assert_eq!(found.find(".Lend0", 2), Some(3));
    assert_eq!(found.find("2f", 2), None);
}

#[test]
fn what_is_not_known_is_named() {
    assert_eq!(
        template("nop; lock xaddl %ymm0, $0", false),
        Err("xaddl %ymm0, %0".to_owned())
    );
}
