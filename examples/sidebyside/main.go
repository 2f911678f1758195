// Sidebyside sells one stock from Go and from Java at once. Both lock the same key: Go with fair, and Java with
// Redisson's getFairLock. They stand in one queue.
//
//	go run ./examples/sidebyside                          300 items; needs Java 17 and Maven
//	go run ./examples/sidebyside -redis localhost:6379    on a real Redis
//
// Seller.java is the Java side, and sell is the same in Go. Each item is sold by a read and a write, so without the
// lock some would be sold twice, and more would be sold than there were. An embedded Redis does for a demonstration;
// see docs/redisson.md for what both sides share.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/fair"
)

var items = flag.Int("items", 300, "items in stock")

func main() { demo.MainOnRedis(sale, nil) }

func sale(ctx context.Context, redis *demo.Redis) error {
	if *items < 1 {
		return errors.New("-items: at least 1")
	}
	here, err := here(ctx)
	if err != nil {
		return err
	}
	libraries, err := libraries(ctx, here)
	if err != nil {
		return err
	}
	lock, stock := redis.Key("lock"), redis.Key("stock")
	if err := redis.SetNumber(ctx, stock, *items); err != nil {
		return err
	}

	java := exec.CommandContext(ctx, "java", "-cp", libraries, filepath.Join(here, "Seller.java"), redis.Address, lock, stock)
	java.Stderr = os.Stderr
	if _, err := java.StdinPipe(); err != nil { // Java ends when it is closed
		return err
	}
	out, err := java.StdoutPipe()
	if err != nil {
		return err
	}
	if err := java.Start(); err != nil {
		return err
	}
	defer func() { _, _ = java.Process.Kill(), java.Wait() }()
	var byJava int
	if _, err := fmt.Fscanln(out, new(string)); err != nil { // "ready"
		return fmt.Errorf("Java: %w", err)
	}
	byGo, err := sell(ctx, redis, lock, stock)
	if err != nil {
		return err
	}
	if _, err := fmt.Fscanln(out, &byJava); err != nil {
		return fmt.Errorf("Java: %w", err)
	}
	fmt.Printf("%d items: Go sold %d, Java sold %d.\n", *items, byGo, byJava)
	if byGo+byJava != *items {
		return errors.New("WRONG: more or fewer were sold than there were")
	}
	return nil
}

// sell sells from the stock until none is left.
func sell(ctx context.Context, redis *demo.Redis, lock, stock string) (sold int, err error) {
	locker, err := fair.New(redis)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, locker.Close()) }()
	for more := true; more; {
		err := locker.Do(ctx, lock, func(ctx context.Context) error {
			left, err := redis.Number(ctx, stock)
			if more = left > 0; err != nil || !more {
				return err
			}
			sold++
			return redis.SetNumber(ctx, stock, left-1)
		})
		if err != nil {
			return sold, err
		}
	}
	return sold, nil
}

// libraries is the class path of Seller.java, which Maven downloads once.
func libraries(ctx context.Context, here string) (string, error) {
	file := filepath.Join(here, "target", "classpath")
	if _, err := os.Stat(file); err != nil {
		fmt.Println("Maven downloads what Java needs.")
		mvn := exec.CommandContext(ctx, "mvn", "-q", "-B", "-ntp", "dependency:build-classpath", "-Dmdep.outputFile="+file)
		mvn.Dir = here
		if out, err := mvn.CombinedOutput(); err != nil {
			return "", fmt.Errorf("mvn: %w\n%s", err, out)
		}
	}
	list, err := os.ReadFile(file)
	return string(list), err
}

// here is the folder of Seller.java.
func here(ctx context.Context) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/holdfast-go/holdfast/examples/sidebyside")
	list.Stderr = os.Stderr
	dir, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("go list, which works in a clone: %w", err)
	}
	return strings.TrimSpace(string(dir)), nil
}
