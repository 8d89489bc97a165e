//! Extraction and insertion of vector lanes and aggregate members: mostly without any code.

use super::body::{Body, Ops};
use crate::code::{Inst, IntPredicate, Operand};
use crate::module::{TypeId, Value};

impl Body<'_, '_> {
    /// Lowers `extractelement`.
    pub fn extract_element(&mut self, vector: Value, index: Value, ty: TypeId) -> Ops {
        let ops = self.operands(vector);
        let (Some((lane, lanes)), Some(_)) = (self.lanes_of(vector), self.shape(ty)) else {
            return self.no_lanes("extractelement", ty);
        };
        let limbs = lane.registers();
        let index_width = self
            .lanes_of(index)
            .map_or(64, |lane| lane.0.bits().min(64));
        let index = self.single(index);
        if let Some(index) = self.constant_value(index) {
            if index >= u64::from(lanes) {
                return self.zeros(limbs);
            }
            return ops.slice(index as u32 * limbs, limbs);
        }
        // Lane by lane: the last matching select wins, an index out of range gives lane 0.
        let lane_bits = lane.bits();
        let mut chosen: Vec<Operand> = (0..limbs).map(|limb| self.at(ops, limb)).collect();
        for lane in 1..lanes {
            let cond = self.is_lane(index, index_width, lane);
            for limb in 0..limbs {
                let a = self.at(ops, lane * limbs + limb);
                let width = (lane_bits - limb * 64).min(64);
                chosen[limb as usize] = self.choose(cond, width, a, chosen[limb as usize]);
            }
        }
        self.ops(chosen)
    }

    /// Lowers `insertelement`.
    pub fn insert_element(
        &mut self,
        vector: Value,
        element: Value,
        index: Value,
        ty: TypeId,
    ) -> Ops {
        let (ops, element) = (self.operands(vector), self.operands(element));
        let Some((lane, lanes)) = self.lanes_of_type(ty) else {
            return self.no_lanes("insertelement", ty);
        };
        let (limbs, lane_bits) = (lane.registers(), lane.bits());
        let index_width = self
            .lanes_of(index)
            .map_or(64, |lane| lane.0.bits().min(64));
        let index = self.single(index);
        let mut result: Vec<Operand> = (0..lanes * limbs)
            .map(|register| self.at(ops, register))
            .collect();
        for lane in 0..lanes {
            let cond = match self.constant_value(index) {
                Some(index) if index == u64::from(lane) => None,
                Some(_) => continue,
                None => Some(self.is_lane(index, index_width, lane)),
            };
            for limb in 0..limbs {
                let at = (lane * limbs + limb) as usize;
                let new = self.at(element, limb);
                result[at] = match cond {
                    Some(cond) => {
                        let width = (lane_bits - limb * 64).min(64);
                        self.choose(cond, width, new, result[at])
                    }
                    None => new,
                };
            }
        }
        self.ops(result)
    }

    fn is_lane(&mut self, index: Operand, width: u32, lane: u32) -> Operand {
        let b = self.constant(u64::from(lane));
        let dst = self.register();
        let pred = IntPredicate::Eq;
        self.emit(Inst::Compare {
            pred,
            width: width as u8,
            dst,
            a: index,
            b,
        });
        Operand::register(dst)
    }

    /// Returns `if cond { a } else { b }`.
    pub fn choose(&mut self, cond: Operand, width: u32, a: Operand, b: Operand) -> Operand {
        let dst = self.register();
        self.emit(Inst::Select {
            width: width as u8,
            dst,
            cond,
            a,
            b,
        });
        Operand::register(dst)
    }

    /// Lowers `shufflevector`.
    pub fn shuffle(&mut self, lhs: Value, rhs: Value, mask: &[i32]) -> Ops {
        let (a, b) = (self.operands(lhs), self.operands(rhs));
        let Some((lane, lanes)) = self.lanes_of(lhs) else {
            self.unsupported("shufflevector of a type that cannot be held in registers");
            return Ops::EMPTY;
        };
        let limbs = lane.registers();
        let mut result = Vec::with_capacity(mask.len() * limbs as usize);
        for &pick in mask {
            let picked = match u32::try_from(pick) {
                Ok(pick) if pick < lanes => a.slice(pick * limbs, limbs),
                Ok(pick) => b.slice((pick - lanes).saturating_mul(limbs), limbs),
                Err(_) => Ops::EMPTY,
            };
            for limb in 0..limbs {
                result.push(self.at(picked, limb));
            }
        }
        self.ops(result)
    }

    /// Lowers `extractvalue`.
    pub fn extract_value(&mut self, aggregate: Value, path: &[u32], ty: TypeId) -> Ops {
        let ops = self.operands(aggregate);
        match self.member(aggregate, path) {
            Some((first, registers)) => ops.slice(first, registers),
            None => self.no_lanes("extractvalue", ty),
        }
    }

    /// Lowers `insertvalue`.
    pub fn insert_value(
        &mut self,
        aggregate: Value,
        element: Value,
        path: &[u32],
        ty: TypeId,
    ) -> Ops {
        let (ops, element) = (self.operands(aggregate), self.operands(element));
        match self.member(aggregate, path) {
            Some((first, registers)) => {
                let missing = self.zeros(registers.saturating_sub(element.len()));
                let after = ops.slice(first + registers, u32::MAX);
                self.concat(&[
                    ops.slice(0, first),
                    element.slice(0, registers),
                    missing,
                    after,
                ])
            }
            None => self.no_lanes("insertvalue", ty),
        }
    }

    /// Returns the first register and the number of registers of a member of an aggregate.
    fn member(&mut self, aggregate: Value, path: &[u32]) -> Option<(u32, u32)> {
        let mut ty = self.cx.module.value_type(self.function, aggregate)?;
        let mut first = 0;
        for &step in path {
            let types = &self.cx.module.types;
            if u64::from(step) >= types.element_count(ty)? {
                return None;
            }
            match &types[ty] {
                crate::module::Type::Array { element, .. } => {
                    first += self.shape(*element)?.registers.checked_mul(step)?;
                }
                crate::module::Type::Struct(body) => {
                    for &field in &body.fields[..step as usize] {
                        first += self.shape(field)?.registers;
                    }
                }
                _ => return None,
            }
            ty = types.element(ty, u64::from(step))?;
        }
        Some((first, self.shape(ty)?.registers))
    }
}
