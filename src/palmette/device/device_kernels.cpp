#include "palmette/device/device_kernels.hpp"

#include <array>
#include <string_view>

#include "palmette/base/never_destroyed.hpp"
#include "palmette/base/text.hpp"

namespace palmette::device {
namespace {

using base::cat;
using kernels::Element;
using kernels::Operator;

enum class Kind { real, half, integer };

struct Type {
    Element element;
    std::string_view name;  ///< in the kernels' names
    Kind kind;
    int bits;
    bool with_sign = false;
};

constexpr std::array types{
    Type{Element::float32, "f32", Kind::real, 32},        Type{Element::float64, "f64", Kind::real, 64},
    Type{Element::float16, "f16", Kind::half, 16},        Type{Element::bfloat16, "bf16", Kind::half, 16},
    Type{Element::int8, "i8", Kind::integer, 8, true},    Type{Element::uint8, "u8", Kind::integer, 8},
    Type{Element::int16, "i16", Kind::integer, 16, true}, Type{Element::uint16, "u16", Kind::integer, 16},
    Type{Element::int32, "i32", Kind::integer, 32, true}, Type{Element::uint32, "u32", Kind::integer, 32},
    Type{Element::int64, "i64", Kind::integer, 64, true}, Type{Element::uint64, "u64", Kind::integer, 64},
};
constexpr std::array operators{Operator::sum,  Operator::prod, Operator::min, Operator::max,
                               Operator::band, Operator::bor,  Operator::bxor};

bool is_bitwise(Operator op) { return op == Operator::band || op == Operator::bor || op == Operator::bxor; }

const Type* type_of(Element element) {
    if (element == Element::byte) element = Element::uint8;
    for (const Type& type : types)
        if (type.element == element) return &type;
    return nullptr;
}

std::string_view short_name(Operator op) { return kernels::name_of(op); }

/// The NaN that the host's processor makes of operands that are none: negative on x86.
#ifdef __x86_64__
constexpr std::string_view nan32 = "0xffc00000", nan64 = "0xfff8000000000000", nan_f16 = "0xfe00", nan_bf16 = "0xffc0";
#else
constexpr std::string_view nan32 = "0x7fc00000", nan64 = "0x7ff8000000000000", nan_f16 = "0x7e00", nan_bf16 = "0x7fc0";
#endif

/// Devices make one NaN of all; the host keeps the first operand's, or else the second one's, with the quiet bit set.
/// `floats` are the operands and the result, `bits` their bits: a, b, result, spare.
std::string keep_nan(int bits, std::string_view float_type, std::array<std::string_view, 3> floats,
                     std::array<std::string_view, 4> words, std::string_view made, std::string_view quiet) {
    const std::string b = cat(".b", bits);
    const auto where_nan = [&](std::string_view of) {
        return cat("setp.nan", float_type, " %p2, ", of, ", ", of, ";\n");
    };
    std::string out = where_nan(floats[2]) + cat("selp", b, " ", words[2], ", ", made, ", ", words[2], ", %p2;\n");
    for (const std::size_t operand : {1, 0})
        out += cat("or", b, " ", words[3], ", ", words[operand], ", ", quiet, ";\n") + where_nan(floats[operand]) +
               cat("selp", b, " ", words[2], ", ", words[3], ", ", words[2], ", %p2;\n");
    return out;
}

std::string_view comparison(Operator op) { return op == Operator::min ? "lt" : "gt"; }

/// All bodies: from the elements at %d6 and %d7 to the one at %d8.
std::string real_body(Operator op, const Type& type) {
    const bool wide = type.bits == 64;
    const std::string f = cat(".f", type.bits), b = cat(".b", type.bits);
    const std::string_view v = wide ? "%g" : "%f", w = wide ? "%e" : "%r";
    const auto value = [&](int i) { return cat(v, i); };
    const auto word = [&](int i) { return cat(w, i); };
    std::string out = cat("ld.global", b, " ", word(1), ", [%d6];\n", "ld.global", b, " ", word(2), ", [%d7];\n", "mov",
                          b, " ", value(1), ", ", word(1), ";\n", "mov", b, " ", value(2), ", ", word(2), ";\n");
    if (op == Operator::sum || op == Operator::prod) {
        out += cat(op == Operator::sum ? "add" : "mul", ".rn", f, " ", value(3), ", ", value(1), ", ", value(2), ";\n");
        out += cat("mov", b, " ", word(3), ", ", value(3), ";\n");
        out += keep_nan(type.bits, f, {value(1), value(2), value(3)}, {word(1), word(2), word(3), word(4)},
                        wide ? nan64 : nan32, wide ? "0x8000000000000" : "0x400000");
    } else {
        // Where one is a NaN the comparison is false, as on the host.
        out += cat("setp.", comparison(op), f, " %p2, ", value(1), ", ", value(2), ";\n");
        out += cat("selp", b, " ", word(3), ", ", word(1), ", ", word(2), ", %p2;\n");
    }
    return out + cat("st.global", b, " [%d8], ", word(3), ";\n");
}

/// Computed in f32 and rounded to nearest even; bfloat16 by integers, as compute capability 7 has no instruction.
std::string half_body(Operator op, const Type& type) {
    const bool brain = type.element == Element::bfloat16;
    std::string out = "ld.global.b16 %h1, [%d6];\nld.global.b16 %h2, [%d7];\n";
    for (const int i : {1, 2})
        out += brain ? cat("cvt.u32.u16 %r", i, ", %h", i, ";\nshl.b32 %r", i, ", %r", i, ", 16;\nmov.b32 %f", i,
                           ", %r", i, ";\n")
                     : cat("cvt.f32.f16 %f", i, ", %h", i, ";\n");
    const std::string_view quiet = brain ? "0x40" : "0x200";
    if (op == Operator::sum || op == Operator::prod) {
        out += cat(op == Operator::sum ? "add" : "mul", ".rn.f32 %f3, %f1, %f2;\n");
        out += brain ? "mov.b32 %r3, %f3;\nshr.u32 %r4, %r3, 16;\nand.b32 %r4, %r4, 1;\nadd.u32 %r4, %r4, 0x7fff;\n"
                       "add.u32 %r3, %r3, %r4;\nshr.u32 %r3, %r3, 16;\ncvt.u16.u32 %h3, %r3;\n"
                     : "cvt.rn.f16.f32 %h3, %f3;\n";
        out += keep_nan(16, ".f32", {"%f1", "%f2", "%f3"}, {"%h1", "%h2", "%h3", "%h4"}, brain ? nan_bf16 : nan_f16,
                        quiet);
    } else {
        out += cat("setp.", comparison(op), ".f32 %p2, %f1, %f2;\nselp.b16 %h3, %h1, %h2, %p2;\n",
                   "selp.f32 %f3, %f1, %f2, %p2;\nsetp.nan.f32 %p2, %f3, %f3;\nor.b16 %h4, %h3, ", quiet,
                   ";\nselp.b16 %h3, %h4, %h3, %p2;\n");
    }
    return out + "st.global.b16 [%d8], %h3;\n";
}

std::string integer_body(Operator op, const Type& type) {
    const bool wide = type.bits == 64;
    const std::string_view w = wide ? "%e" : "%r", sign = type.with_sign ? "s" : "u";
    const int computed = wide ? 64 : 32;
    const std::string memory = cat(".", sign, type.bits);
    const auto of = [&](std::string_view name) { return cat(name, computed, " ", w, "3, ", w, "1, ", w, "2;\n"); };
    std::string out = cat("ld.global", memory, " ", w, "1, [%d6];\n", "ld.global", memory, " ", w, "2, [%d7];\n");
    switch (op) {
        case Operator::sum:
            out += of("add.u");
            break;
        case Operator::prod:
            out += of("mul.lo.u");
            break;
        case Operator::band:
            out += of("and.b");
            break;
        case Operator::bor:
            out += of("or.b");
            break;
        case Operator::bxor:
            out += of("xor.b");
            break;
        default:
            out += of(cat(short_name(op), ".", sign));
    }
    return out + cat("st.global.u", type.bits, " [%d8], ", w, "3;\n");
}

std::string entry(Operator op, const Type& type) {
    int shift = 0;
    while (8 << shift < type.bits) ++shift;
    std::string out = cat(
        ".visible .entry ", kernel_name(op, type.element),
        "(.param .u64 left, .param .u64 right, .param .u64 target, .param .u64 count)\n{\n"
        ".reg .pred %p<3>;\n.reg .b16 %h<5>;\n.reg .b32 %r<9>;\n.reg .b64 %d<12>;\n.reg .b64 %e<5>;\n.reg .f32 %f<4>;\n"
        ".reg .f64 %g<4>;\n"
        "ld.param.u64 %d1, [left];\nld.param.u64 %d2, [right];\nld.param.u64 %d3, [target];\nld.param.u64 %d4, "
        "[count];\n"
        "cvta.to.global.u64 %d1, %d1;\ncvta.to.global.u64 %d2, %d2;\ncvta.to.global.u64 %d3, %d3;\n"
        // From this thread's first element on, by as many as there are threads.
        "mov.u32 %r5, %ctaid.x;\nmov.u32 %r6, %ntid.x;\nmov.u32 %r7, %tid.x;\nmov.u32 %r8, %nctaid.x;\n"
        "mul.wide.u32 %d5, %r5, %r6;\ncvt.u64.u32 %d9, %r7;\nadd.u64 %d5, %d5, %d9;\nmul.wide.u32 %d10, %r8, %r6;\n"
        "next:\nsetp.ge.u64 %p1, %d5, %d4;\n@%p1 bra done;\n");
    out += cat("shl.b64 %d11, %d5, ", shift,
               ";\nadd.u64 %d6, %d1, %d11;\nadd.u64 %d7, %d2, %d11;\nadd.u64 %d8, %d3, %d11;\n");
    out += type.kind == Kind::real   ? real_body(op, type)
           : type.kind == Kind::half ? half_body(op, type)
                                     : integer_body(op, type);
    return out + "add.u64 %d5, %d5, %d10;\nbra next;\ndone:\nret;\n}\n";
}

std::string all_entries() {
    // The first ISA with compute capability 7.0: CUDA 9's drivers take it.
    std::string out = ".version 6.0\n.target sm_70\n.address_size 64\n";
    for (const Type& type : types)
        for (const Operator op : operators)
            if (has_kernel(op, type.element)) out += entry(op, type);
    return out;
}

}  // namespace

bool has_kernel(Operator op, Element element) {
    const Type* type = type_of(element);
    if (!type) return false;
    if (is_bitwise(op)) return type->kind == Kind::integer;
    if (element == Element::byte) return false;
    return op == Operator::sum || op == Operator::prod || op == Operator::min || op == Operator::max;
}

std::string kernel_name(Operator op, Element element) {
    const Type* type = type_of(element);
    return type ? cat("palmette_", short_name(op), "_", type->name) : std::string();
}

const std::string& kernels_ptx() {
    static base::NeverDestroyed text(all_entries());
    return *text;
}

}  // namespace palmette::device
