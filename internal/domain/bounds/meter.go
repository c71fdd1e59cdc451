package bounds

import (
	"fmt"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// What an expression may cost, and those of a run together.
const (
	MaxWork    = 2_000_000 // steps
	MaxRunWork = 20_000_000
)

// Work is what the expressions of one run may still cost together. Who
// evaluates only one needs none.
type Work struct{ left int }

// NewWork is a run's full allowance.
func NewWork() *Work { return &Work{left: MaxRunWork} }

// Spent is an error when nothing is left.
func (w *Work) Spent() error {
	if w != nil && w.left <= 0 {
		return fmt.Errorf("the expressions of the run take more than %d steps together", MaxRunWork)
	}
	return nil
}

// Spend takes off what an expression has cost.
func (w *Work) Spend(m *Meter) { w.take(MaxWork - m.left) }

func (w *Work) take(steps int) {
	if w != nil {
		w.left -= steps
	}
}

// errWork ends an expression that costs too much, before it has done it.
var errWork = fmt.Errorf("the expression takes more than %d steps", MaxWork)

// Meter counts what an expression does: a step for each term that is evaluated,
// and more for a value, which is weighed unfolded when it is made and when
// something walks through it. CEL's own costs count a list as one thing however
// often it holds itself, and keeping them takes time with the square of the
// steps.
type Meter struct {
	left     int
	patterns map[string]*Pattern
	read     Readings
}

// NewMeter is one for a single evaluation.
func NewMeter(r Readings) *Meter {
	return &Meter{left: MaxWork, patterns: map[string]*Pattern{}, read: r}
}

// Readings say how the terms of an expression are read, by their ids.
type Readings map[int64]reading

// reading is how a function reads an argument that was there before.
type reading int

const (
	whole   reading = iota + 1 // all that is in it
	members                    // all that is in a list, but of a map nothing
	surface                    // a text to its end, but of a list nothing
)

// Spend ends the evaluation when nothing is left.
func (m *Meter) Spend(steps int) {
	if m.left -= steps; m.left < 0 {
		panic(interpreter.EvalCancelledError{Message: errWork.Error()})
	}
}

// spendText counts reading a text.
func (m *Meter) spendText(bytes int) { m.Spend(1 + bytes/8) }

// walk counts all that is in a value, and stops as soon as that is too much.
func (m *Meter) walk(v ref.Val) {
	switch v := v.(type) {
	case types.String:
		m.spendText(len(v))
	case types.Bytes:
		m.spendText(len(v))
	case traits.MutableLister: // what a macro gathers, which was weighed piece by piece
	case traits.Mapper:
		m.Spend(1)
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			m.walk(key)
			m.walk(v.Get(key))
		}
	case traits.Lister:
		m.Spend(1)
		size, _ := v.Size().(types.Int)
		for i := range size {
			m.walk(v.Get(i))
		}
	default:
		m.Spend(1)
	}
}

func (m *Meter) argument(v ref.Val, how reading) {
	switch v := v.(type) {
	case types.String:
		m.spendText(len(v))
	case types.Bytes:
		m.spendText(len(v))
	case traits.Mapper:
		if how == whole {
			m.walk(v)
		}
	default:
		if how != surface {
			m.walk(v)
		}
	}
}

// ReadingsOf finds out which terms are handed to a function that reads them.
func ReadingsOf(checked *cel.Ast) Readings {
	found := Readings{}
	celast.PreOrderVisit(checked.NativeRep().Expr(), celast.NewExprVisitor(func(x celast.Expr) {
		if x.Kind() != celast.CallKind {
			return
		}
		call, how := x.AsCall(), whole
		switch call.FunctionName() {
		case operators.Index, operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.NotStrictlyFalse:
			return
		case overloads.Size, operators.Add:
			how = surface
		case operators.In:
			found[call.Args()[0].ID()], found[call.Args()[1].ID()] = whole, members
			return
		}
		if call.IsMemberFunction() {
			found[call.Target().ID()] = how
		}
		for _, arg := range call.Args() {
			found[arg.ID()] = how
		}
	}))
	return found
}

// Decorate makes the terms of an expression count.
func (m *Meter) Decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch term := i.(type) {
	case interpreter.InterpretableConst:
		return i, nil
	case interpreter.InterpretableConstructor:
		return &madeTerm{term, m}, nil
	case interpreter.InterpretableAttribute:
		return &readTerm{term, m, m.read[i.ID()]}, nil
	case interpreter.InterpretableCall:
		if isMatch(term) {
			return &matchTerm{term, m}, nil
		}
		return &callTerm{term, m, m.read[i.ID()]}, nil
	}
	return i, nil
}

// madeTerm is a list or map that is written out; the same values may stand in
// it many times.
type madeTerm struct {
	interpreter.InterpretableConstructor
	m *Meter
}

func (t *madeTerm) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := t.InterpretableConstructor.Exec(frame)
	t.m.walk(v)
	return v
}

func (t *madeTerm) Eval(a interpreter.Activation) ref.Val { return t.Exec(interpreter.AsFrame(a)) }

// readTerm is a name, whose value a function may read.
type readTerm struct {
	interpreter.InterpretableAttribute
	m   *Meter
	how reading
}

func (t *readTerm) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	t.m.Spend(1)
	v := t.InterpretableAttribute.Exec(frame)
	if t.how != 0 {
		t.m.argument(v, t.how)
	}
	return v
}

func (t *readTerm) Eval(a interpreter.Activation) ref.Val { return t.Exec(interpreter.AsFrame(a)) }

// callTerm is a call of a function, whose result may be a value that was there
// before or two of them joined.
type callTerm struct {
	interpreter.InterpretableCall
	m   *Meter
	how reading // of its result
}

func (t *callTerm) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	t.m.Spend(1)
	v := t.InterpretableCall.Exec(frame)
	switch {
	case t.Function() == operators.Add:
		t.m.walk(v)
	case t.how != 0:
		t.m.argument(v, t.how)
	}
	return v
}

func (t *callTerm) Eval(a interpreter.Activation) ref.Val { return t.Exec(interpreter.AsFrame(a)) }

func isMatch(call interpreter.InterpretableCall) bool {
	return call.Function() == overloads.Matches && len(call.Args()) == 2
}

// matchTerm is `matches`. CEL would compile the pattern each time, whatever it
// unfolds into.
type matchTerm struct {
	interpreter.InterpretableCall
	m *Meter
}

func (t *matchTerm) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := t.Args()
	subject, expr := args[0].Exec(frame), args[1].Exec(frame)
	for _, v := range []ref.Val{subject, expr} {
		if types.IsUnknownOrError(v) {
			return v
		}
	}
	s, isText := subject.(types.String)
	p, isPattern := expr.(types.String)
	if !isText || !isPattern {
		return types.MaybeNoSuchOverloadErr(subject)
	}
	re, err := t.m.pattern(string(p))
	if err != nil {
		return types.WrapErr(err)
	}
	t.m.Spend(1 + len(s)*re.Steps/32)
	return types.Bool(re.MatchString(string(s)))
}

func (t *matchTerm) Eval(a interpreter.Activation) ref.Val { return t.Exec(interpreter.AsFrame(a)) }

// patternCost is what compiling a character of one costs, compared with a step.
const patternCost = 200

// pattern compiles a regular expression, each only once.
func (m *Meter) pattern(s string) (*Pattern, error) {
	if known := m.patterns[s]; known != nil {
		return known, nil
	}
	m.Spend(patternCost * patternSize(s))
	p, err := CompilePattern(s)
	if err != nil {
		return nil, fmt.Errorf("the pattern of `matches`: %w", err)
	}
	m.patterns[s] = p
	return p, nil
}
