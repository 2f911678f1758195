// Package settings applies the options of a locker.
package settings

import (
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Apply sets opts. function is what users have called, with its package; errors name it.
func Apply(function string, s *holdfast.Settings, opts []holdfast.Option) error {
	for _, o := range opts {
		if o == nil {
			return errs.Invalid("%s: option is nil", function)
		}
		if err := o.Apply(s); err != nil {
			return errs.Invalid("%s: %w", function, err)
		}
	}
	return nil
}

// Own is an option of the one kind whose own settings are a T.
type Own[T any] struct {
	Name string // with that of its package
	Set  func(*T)
}

// Apply implements [holdfast.Option].
func (o Own[T]) Apply(s *holdfast.Settings) error {
	own, ours := s.Own.(*T)
	if !ours {
		return fmt.Errorf("%s is not an option of this lock kind", o.Name)
	}
	o.Set(own)
	return nil
}
