package lockclienttest

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

// Becomes says what becomes of each option of another client, by its name.
type Becomes struct {
	Adapter                   string // how its errors begin
	Taken, LeftAside, Refused []string
}

// Option requires that an option which is taken makes of is something else, that one which is
// left aside does not, and that the error names one which is refused.
func (b Becomes) Option(t *testing.T, name string, is, becomes rueidis.ClientOption, err error) {
	t.Helper()
	switch {
	case slices.Contains(b.Refused, name):
		require.ErrorIs(t, err, holdfast.ErrInvalidArgument, name)
		require.ErrorContains(t, err, b.Adapter+": "+name+" ")
	case slices.Contains(b.Taken, name):
		require.NoError(t, err, name)
		require.NotEqual(t, Shown(is), Shown(becomes), name)
	case slices.Contains(b.LeftAside, name):
		require.NoError(t, err, name)
		require.Equal(t, Shown(is), Shown(becomes), name)
	default:
		t.Errorf("%s: is it taken, refused or without meaning for locks?", name)
	}
}

// Shown is o in a form that can be compared: of a function only whether it is there.
func Shown(o rueidis.ClientOption) map[string]any {
	all, v := map[string]any{}, reflect.ValueOf(o)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Func {
			all[v.Type().Field(i).Name] = !f.IsNil()
		} else {
			all[v.Type().Field(i).Name] = f.Interface()
		}
	}
	return all
}

// Some returns a value that is not zero: one of own, if its type fits.
func Some(t *testing.T, typ reflect.Type, own ...any) reflect.Value {
	t.Helper()
	for _, v := range append(own, 1500*time.Millisecond) {
		if reflect.TypeOf(v).AssignableTo(typ) {
			return reflect.ValueOf(v)
		}
	}
	switch typ.Kind() {
	case reflect.String:
		return reflect.ValueOf("unix")
	case reflect.Bool:
		return reflect.ValueOf(true)
	case reflect.Int:
		return reflect.ValueOf(2).Convert(typ)
	case reflect.Slice:
		return reflect.ValueOf([]string{"b:2", "c:3"})
	case reflect.Pointer:
		return reflect.New(typ.Elem())
	case reflect.Func:
		return reflect.MakeFunc(typ, func([]reflect.Value) []reflect.Value { panic("not called") })
	}
	require.FailNow(t, "no value of "+typ.String())
	return reflect.Value{}
}
