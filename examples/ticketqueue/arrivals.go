package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"
)

// customer is one line of the input.
type customer struct {
	Name    string
	At      time.Duration // after the start
	Service time.Duration // at the counter
}

const (
	maxCustomers = 10_000
	maxName      = 100              // bytes
	maxAt        = 24 * time.Hour   // after the start
	maxService   = 10 * time.Minute // at the counter
)

var columns = []string{"customer", "at", "service"}

// makeCustomers returns customers who come about twice as fast as they can be
// served, the same at every run.
func makeCustomers(n int) []customer {
	random := rand.New(rand.NewPCG(1, 2))
	customers := make([]customer, n)
	at := time.Duration(0)
	for i := range customers {
		at += time.Duration(random.IntN(20)) * time.Millisecond
		service := time.Duration(5+random.IntN(26)) * time.Millisecond
		customers[i] = customer{Name: fmt.Sprint("c", i+1), At: at, Service: service}
	}
	return customers
}

// readCustomers reads a CSV file. An error names the file and, where there is
// one, the line and the column (in bytes), each from 1.
func readCustomers(name string) ([]customer, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("-arrivals: %w", err)
	}
	defer f.Close()
	customers, line, column, err := parseCustomers(f)
	switch {
	case err != nil && line == 0:
		return nil, fmt.Errorf("-arrivals: %w", err)
	case err != nil:
		return nil, fmt.Errorf("-arrivals: %s:%d:%d: %w", name, line, column, err)
	}
	return customers, nil
}

// parseCustomers also returns where an error is; line 0: nowhere in the text.
func parseCustomers(in io.Reader) (customers []customer, line, column int, err error) {
	r := csv.NewReader(in)
	r.FieldsPerRecord = -1 // counted here, after what the fields say
	lines := map[string]int{}
	for first := true; ; first = false {
		fields, err := r.Read()
		if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
			return nil, bad.Line, bad.Column, bad.Err
		}
		if err == io.EOF {
			if len(customers) == 0 {
				return nil, 1, 1, errors.New("no customers")
			}
			return customers, 0, 0, nil
		}
		if err != nil {
			return nil, 0, 0, err
		}
		fields[0] = strings.TrimPrefix(fields[0], "\ufeff") // as spreadsheets begin
		var c customer
		var wrong int
		if first {
			wrong, err = checkHeader(fields)
		} else if wrong, err = c.parse(fields, customers, lines); err == nil {
			customers = append(customers, c)
			lines[c.Name], _ = r.FieldPos(0)
		}
		if err != nil {
			line, column = r.FieldPos(min(wrong, len(fields)-1))
			return nil, line, column, err
		}
	}
}

// checkHeader returns the index of the field that is wrong, and why.
func checkHeader(fields []string) (int, error) {
	for i, want := range columns {
		switch {
		case i == len(fields):
			return i, fmt.Errorf("column %s is missing", want)
		case strings.TrimSpace(fields[i]) != want:
			return i, fmt.Errorf("column %d is %q, want %q", i+1, strings.TrimSpace(fields[i]), want)
		}
	}
	return len(columns), tooMany(fields)
}

// parse fills c. It returns the index of the field that is wrong, and why. Lines
// tells on which line the names are that came before.
func (c *customer) parse(fields []string, before []customer, lines map[string]int) (wrong int, err error) {
	if len(fields) < len(columns) {
		return len(fields), fmt.Errorf("%s is missing", columns[len(fields)])
	}
	c.Name = strings.TrimSpace(fields[0])
	switch {
	case c.Name == "":
		return 0, errors.New("customer is empty")
	case len(c.Name) > maxName:
		return 0, fmt.Errorf("customer has %d bytes, at most %d are allowed", len(c.Name), maxName)
	case lines[c.Name] != 0:
		return 0, fmt.Errorf("customer %q is on line %d already", c.Name, lines[c.Name])
	case len(before) == maxCustomers:
		return 0, fmt.Errorf("more than %d customers", maxCustomers)
	}
	if c.At, err = milliseconds("at", fields[1], maxAt); err != nil {
		return 1, err
	}
	if n := len(before); n > 0 && c.At < before[n-1].At {
		return 1, fmt.Errorf("at %d is before the %d of the customer above", c.At.Milliseconds(), before[n-1].At.Milliseconds())
	}
	if c.Service, err = milliseconds("service", fields[2], maxService); err != nil {
		return 2, err
	}
	return len(columns), tooMany(fields)
}

func tooMany(fields []string) error {
	if len(fields) > len(columns) {
		return fmt.Errorf("%d fields, want the %d of %s", len(fields), len(columns), strings.Join(columns, ","))
	}
	return nil
}

func milliseconds(name, text string, most time.Duration) (time.Duration, error) {
	text = strings.TrimSpace(text)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most.Milliseconds() {
		return 0, fmt.Errorf("%s %q is not a whole number of ms from 0 to %d", name, text, most.Milliseconds())
	}
	return time.Duration(n) * time.Millisecond, nil
}
