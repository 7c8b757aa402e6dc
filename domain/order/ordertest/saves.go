package ordertest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"orderonce/domain/order"
)

// Saves is a store of one kind of state, for TestSaves: orders, refunds, receipts and
// registrations share what Save promises.
type Saves[T any] struct {
	// Load returns the state of an item; of an item that does not exist, that with no
	// field.
	Load func(ctx context.Context, id order.ID) (T, error)
	Save func(ctx context.Context, before, after T) (T, error)
	// Missing, Bare and Full are states of an item: it does not exist, it has only what it
	// must have, it has every field, each with another value than in Bare.
	Missing, Bare, Full func(id order.ID) T
	Fields              []Field[T]
	// Stale reports whether a change of a field by another writer refuses a write that
	// changes another field, or the same one.
	Stale func(meanwhile, write string) bool
}

// Field is a part of a state that a write can change alone.
type Field[T any] struct {
	Name string
	Copy func(to *T, from T)
}

// FieldsBut returns every field of a struct but those.
func FieldsBut[T any](without ...string) (all []Field[T]) {
	for f := range reflect.TypeFor[T]().Fields() {
		if !slices.Contains(without, f.Name) {
			all = append(all, Field[T]{f.Name, func(to *T, from T) {
				reflect.ValueOf(to).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(from).FieldByIndex(f.Index))
			}})
		}
	}
	return all
}

// TestSaves tests the contract that the Save of every store has. No two tests of one run
// use the same item.
func TestSaves[T any](t *testing.T, open func(t *testing.T) Saves[T]) {
	t.Helper()
	for name, test := range map[string]func(savesTest[T]){
		"a change of one field writes that field alone":                savesTest[T].oneField,
		"a write is refused after a change that it rests on, alone":    savesTest[T].meanwhile,
		"a write is refused if another writer changed the same field":  savesTest[T].sameField,
		"an item that exists is not new, and one that does not is not": savesTest[T].missing,
		"a repeated write succeeds and changes nothing":                savesTest[T].repeated,
		"of fifty concurrent writes one succeeds":                      savesTest[T].race,
	} {
		t.Run(name, func(t *testing.T) {
			test(savesTest[T]{t, open(t)})
		})
	}
}

type savesTest[T any] struct {
	*testing.T
	Saves[T]
}

// id returns the id of an item that is unique to the test and to the parts.
func (x savesTest[T]) id(parts ...any) order.ID { return idOf(x.Name() + fmt.Sprint(parts...)) }

func (x savesTest[T]) mustSave(before, after T) {
	x.Helper()
	now, err := x.Save(x.Context(), before, after)
	if err != nil {
		x.Fatalf("save: %v", err)
	}
	if d := diff(now, after); d != "" {
		x.Fatalf("save returns another state:%s", d)
	}
}

func (x savesTest[T]) wantLoad(id order.ID, want T, why string) {
	x.Helper()
	got, err := x.Load(x.Context(), id)
	if d := diff(got, want); err != nil || d != "" {
		x.Errorf("%s: load: %v:%s", why, err, d)
	}
}

// wantStale checks that a write is refused with the state that is there, and leaves it.
func (x savesTest[T]) wantStale(id order.ID, before, after, there T, why string) {
	x.Helper()
	now, err := x.Save(x.Context(), before, after)
	if !errors.Is(err, order.ErrStale) {
		x.Errorf("%s: got %v, want ErrStale", why, err)
		return
	}
	if d := diff(now, there); d != "" {
		x.Errorf("%s: ErrStale comes with another state:%s", why, d)
	}
	x.wantLoad(id, there, why)
}

func with[T any](state, from T, fields ...Field[T]) T { //nolint:ireturn // T is a record or an account
	for _, f := range fields {
		f.Copy(&state, from)
	}
	return state
}

func (x savesTest[T]) oneField() {
	for _, f := range x.Fields {
		ways := map[string][2]func(order.ID) T{"set": {x.Bare, x.Full}, "removed": {x.Full, x.Bare}}
		for way, states := range ways {
			id := x.id(f.Name, way)
			from, to := states[0](id), states[1](id)
			x.mustSave(x.Missing(id), from)
			x.wantLoad(id, from, f.Name+": new")
			x.mustSave(from, with(from, to, f))
			x.wantLoad(id, with(from, to, f), f.Name+" "+way)
		}
	}
}

func (x savesTest[T]) meanwhile() {
	for n, other := range x.Fields {
		for m, own := range x.Fields {
			if n == m {
				continue
			}
			why := own.Name + " after " + other.Name
			id := x.id(why)
			before, full := x.Bare(id), x.Full(id)
			there, after := with(before, full, other), with(before, full, own)
			x.mustSave(x.Missing(id), before)
			x.mustSave(before, there)
			if x.Stale(other.Name, own.Name) {
				x.wantStale(id, before, after, there, why)
				continue
			}
			if _, err := x.Save(x.Context(), before, after); err != nil {
				x.Errorf("%s: got %v, want no error", why, err)
			}
			x.wantLoad(id, with(there, full, own), why)
		}
	}
}

// sameField writes on the condition of a value that another writer has set back.
func (x savesTest[T]) sameField() {
	for n, f := range x.Fields {
		other := x.Fields[(n+1)%len(x.Fields)]
		if x.Stale(f.Name, other.Name) || !x.Stale(f.Name, f.Name) {
			continue // tested as a change meanwhile, or never compared
		}
		for way, states := range [][2]func(order.ID) T{{x.Bare, x.Full}, {x.Full, x.Bare}} {
			id := x.id(f.Name, way)
			there, to := states[0](id), states[1](id)
			x.mustSave(x.Missing(id), there)
			x.wantStale(id, with(there, to, f), with(there, to, other), there, f.Name)
		}
	}
}

func (x savesTest[T]) missing() {
	id := x.id()
	x.wantLoad(id, x.Missing(id), "nothing saved")
	if _, err := x.Save(x.Context(), x.Bare(id), x.Full(id)); !errors.Is(err, order.ErrStale) {
		x.Errorf("change of nothing: got %v, want ErrStale", err)
	}
	x.wantLoad(id, x.Missing(id), "after the change of nothing")
	x.mustSave(x.Missing(id), x.Full(id))
	x.wantStale(id, x.Missing(id), x.Bare(id), x.Full(id), "new again")
}

func (x savesTest[T]) repeated() {
	id := x.id()
	steps := []T{x.Missing(id), x.Bare(id), x.Full(id), x.Bare(id)}
	for n := range steps[1:] {
		for range 2 {
			x.mustSave(steps[n], steps[n+1])
			x.wantLoad(id, steps[n+1], fmt.Sprintf("step %d", n))
		}
	}
}

// race writes two states of a new item at once, each by half of the racers. One wins, and
// for the others of its half that is a repetition.
func (x savesTest[T]) race() {
	id := x.id()
	states := [...]T{x.Bare(id), x.Full(id)}
	errs := Race(func(i int) error {
		_, err := x.Save(x.Context(), x.Missing(id), states[i%2])
		return err
	})
	won, err := x.Load(x.Context(), id)
	if err != nil || diff(won, states[0]) != "" && diff(won, states[1]) != "" {
		x.Fatalf("load: got %+v, %v, want one of the states", won, err)
	}
	for i, err := range errs {
		var want error
		if diff(won, states[i%2]) != "" {
			want = order.ErrStale
		}
		if !errors.Is(err, want) {
			x.Errorf("racer %d: got %v, want %v", i, err, want)
		}
	}
}

// Racers is the number of concurrent goroutines of a Race.
const Racers = 50

// Race calls do concurrently with 0 to Racers-1 and returns the errors.
func Race(do func(i int) error) []error {
	var (
		errs  = make([]error, Racers)
		start = make(chan struct{})
		wg    sync.WaitGroup
	)
	for i := range Racers {
		wg.Go(func() {
			<-start
			errs[i] = do(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// AnyOf returns a function for Saves.Stale: a change of a field of the guard refuses
// every write, and one of another field, unless it is quiet, a write of the same field.
func AnyOf(guard, quiet []string) func(meanwhile, write string) bool {
	return func(meanwhile, write string) bool {
		return slices.Contains(guard, meanwhile) || meanwhile == write && !slices.Contains(quiet, meanwhile)
	}
}

func diff[T any](got, want T) string {
	var b strings.Builder
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if is, wanted := g.Field(i).Interface(), w.Field(i).Interface(); !reflect.DeepEqual(is, wanted) {
			fmt.Fprintf(&b, "\n  %s: got %v, want %v", g.Type().Field(i).Name, is, wanted)
		}
	}
	return b.String()
}
