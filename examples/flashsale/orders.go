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
)

// order is one line of the input.
type order struct {
	ID, Buyer, SKU string
	Quantity       int
}

const (
	maxText     = 200       // bytes of an id, buyer or sku
	maxQuantity = 1_000_000 // units of one order
)

var columns = []string{"order", "buyer", "sku", "quantity"}

// makeOrders returns one order for each buyer, the same at every run: most want
// one unit, some two or three, of any item.
func makeOrders(buyers, skus int) []order {
	random := rand.New(rand.NewPCG(1, 2))
	orders := make([]order, buyers)
	for i := range orders {
		orders[i] = order{
			ID:       fmt.Sprint("o", i+1),
			Buyer:    fmt.Sprint("buyer-", i+1),
			SKU:      fmt.Sprint("item-", random.IntN(skus)+1),
			Quantity: []int{1, 1, 1, 2, 3}[random.IntN(5)],
		}
	}
	return orders
}

// readOrders reads a CSV file. An error names the file and, where there is one,
// the line and the column (in bytes), each from 1.
func readOrders(name string) ([]order, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("-orders: %w", err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = len(columns)
	var (
		orders []order
		lines  = make(map[string]int) // order id -> line
		header = true
	)
	for {
		fields, err := r.Read()
		switch bad := (*csv.ParseError)(nil); {
		case err == io.EOF && len(orders) == 0:
			return nil, at(name, 1, 1, errors.New("no orders"))
		case err == io.EOF:
			return orders, nil
		case errors.Is(err, csv.ErrFieldCount):
			line, column := r.FieldPos(len(fields) - 1)
			return nil, at(name, line, column, fmt.Errorf("%d fields, want the %d of %s", len(fields), len(columns), strings.Join(columns, ",")))
		case errors.As(err, &bad):
			return nil, at(name, bad.Line, bad.Column, bad.Err)
		case err != nil:
			return nil, fmt.Errorf("-orders: %w", err)
		}
		if header {
			fields[0] = strings.TrimPrefix(fields[0], "\ufeff") // as spreadsheets write it
		}
		for i, text := range fields {
			fields[i] = strings.TrimSpace(text)
			if err := checkField(i, fields[i], header, lines); err != nil {
				line, column := r.FieldPos(i)
				return nil, at(name, line, column, err)
			}
		}
		if header {
			header = false
			continue
		}
		quantity, _ := strconv.Atoi(fields[3])
		orders = append(orders, order{ID: fields[0], Buyer: fields[1], SKU: fields[2], Quantity: quantity})
		lines[fields[0]], _ = r.FieldPos(0)
	}
}

func checkField(i int, text string, header bool, lines map[string]int) error {
	name := columns[i]
	if header {
		if text != name {
			return fmt.Errorf("column %d is %q, want %q", i+1, text, name)
		}
		return nil
	}
	switch {
	case text == "":
		return fmt.Errorf("%s is empty", name)
	case len(text) > maxText:
		return fmt.Errorf("%s has %d bytes, at most %d are allowed", name, len(text), maxText)
	case name == "order" && lines[text] != 0:
		return fmt.Errorf("order %q is on line %d already", text, lines[text])
	case name == "quantity":
		if n, err := strconv.Atoi(text); err != nil || n < 1 || n > maxQuantity {
			return fmt.Errorf("quantity %q is not a whole number from 1 to %d", text, maxQuantity)
		}
	}
	return nil
}

func at(name string, line, column int, err error) error {
	return fmt.Errorf("-orders: %s:%d:%d: %w", name, line, column, err)
}
