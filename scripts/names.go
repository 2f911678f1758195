package scripts

import "github.com/holdfast-go/holdfast/internal/names"

// Channel returns the channel that is notified when key is released. The message is the
// digit 0.
func Channel(key string) string { return names.Of("redisson_lock__channel", key) }

// SemaphoreChannel returns the channel that is notified when a permit of key is given back, or
// their number changes. The message is the digit 0.
func SemaphoreChannel(key string) string { return names.Of("holdfast_permits_channel", key) }

// RWLockChannel returns the channel that is notified when the read/write lock key is released:
// by 0 if its last reader leaves, and by 1 if a writer does, those leave that others let go first, or
// an operator frees it.
func RWLockChannel(key string) string { return names.Of("redisson_rwlock", key) }
