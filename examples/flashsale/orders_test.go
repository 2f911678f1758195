package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func write(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "in.csv")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestOrdersAreRead(t *testing.T) {
	orders, err := readOrders(write(t, "\ufefforder, buyer,sku,quantity\r\n\r\n1,ada,\"a, \"\"b\"\"\nc\",2\r\n 2 ,bo,x,1000000"))
	require.NoError(t, err)
	require.Equal(t, []order{{"1", "ada", "a, \"b\"\nc", 2}, {"2", "bo", "x", 1000000}}, orders)
}

// The sample has what a flash sale has: items that sell out, one that does not,
// and orders of several units.
func TestSampleOrders(t *testing.T) {
	orders, err := readOrders("orders.csv")
	require.NoError(t, err)
	asked, several := map[string]int{}, 0
	for _, o := range orders {
		asked[o.SKU] += o.Quantity
		if o.Quantity > 1 {
			several++
		}
	}
	require.Greater(t, asked["console-x"], 200)
	require.Less(t, asked["mug"], 100)
	require.Greater(t, several, 50)
}

func TestBadInputSellsNothing(t *testing.T) {
	s := redistest.Start(t, "--requirepass", "open-sesame")
	good := "redis://:open-sesame@" + s.Addr()
	const head = "order,buyer,sku,quantity\n1,ada,a,1\n"
	csv := func(text string) []string { return []string{"-redis", good, "-orders", write(t, text)} }
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no such file":      {[]string{"-redis", good, "-orders", "nowhere.csv"}, `-orders: open nowhere.csv: no such file`},
		"empty file":        {csv(""), `in.csv:1:1: no orders`},
		"header only":       {csv("order,buyer,sku,quantity\n"), `in.csv:1:1: no orders`},
		"wrong column":      {csv("order,buyer,item,quantity\n1,ada,a,1\n"), `in.csv:1:13: column 3 is "item", want "sku"`},
		"no header":         {csv("1,ada,a,1\n"), `in.csv:1:1: column 1 is "1", want "order"`},
		"column missing":    {csv("order,buyer,quantity\n1,ada,1\n"), `in.csv:1:13: 3 fields, want the 4 of order,buyer,sku,quantity`},
		"field missing":     {csv(head + "2,bo,a\n"), `in.csv:3:6: 3 fields`},
		"quantity a word":   {csv(head + "2,bo,a,two\n"), `in.csv:3:8: quantity "two" is not a whole number from 1 to 1000000`},
		"quantity zero":     {csv(head + "2,bo,a,0\n"), `in.csv:3:8: quantity "0"`},
		"quantity negative": {csv(head + "2,bo,a,-1\n"), `in.csv:3:8: quantity "-1"`},
		"quantity broken":   {csv(head + "2,bo,a,1.5\n"), `in.csv:3:8: quantity "1.5"`},
		"quantity huge":     {csv(head + "2,bo,a,99999999999999999999\n"), `in.csv:3:8: quantity`},
		"order twice":       {csv(head + "2,bo,a,1\n1,cy,b,1\n"), `in.csv:4:1: order "1" is on line 2 already`},
		"sku empty":         {csv(head + "2,bo, ,1\n"), `in.csv:3:6: sku is empty`},
		"sku long":          {csv(head + "2,bo," + strings.Repeat("x", 201) + ",1\n"), `in.csv:3:6: sku has 201 bytes`},
		"quote open":        {csv(head + "2,\"bo,a,1\n"), `in.csv:3:`},
		"no Redis":          {[]string{"-redis", "127.0.0.1:1"}, `-redis: dial tcp 127.0.0.1:1: `},
		"wrong password":    {[]string{"-redis", "redis://:wrong-word@" + s.Addr()}, `-redis: WRONGPASS`},
		"no URL":            {[]string{"-redis", "redis://:open-sesame@%zz"}, `-redis: not a redis:// or rediss:// URL`},
		"no address":        {[]string{"-redis", "u:open-sesame@localhost"}, `-redis: neither host:port`},
		"no scheme":         {[]string{"-redis", "open-sesame@127.0.0.1:1"}, `-redis: neither host:port`},
		"address empty":     {[]string{"-redis", ""}, `-redis: is empty`},
		"no processes":      {[]string{"-processes", "0"}, `-processes: 0 is not from 1 to 64`},
		"no goroutines":     {[]string{"-goroutines", "0"}, `-goroutines: 0 `},
		"no buyers":         {[]string{"-buyers", "-5"}, `-buyers: -5 `},
		"stock negative":    {[]string{"-stock", "-1"}, `-stock: -1 `},
		"skus a word":       {[]string{"-skus", "some"}, `invalid value "some" for flag -skus`},
		"lease":             {[]string{"-lease", "99ms"}, `-lease: 99ms is not`},
		"guard":             {[]string{"-guard=foo"}, `-guard: "foo" is neither lock nor none`},
		"kill the only one": {[]string{"-kill", "-processes", "1"}, `-kill: needs`},
		"contradiction":     {append(csv(head), "-buyers", "3"), `-buyers: contradicts -orders`},
		"unknown flag":      {[]string{"-gaurd=none"}, `-gaurd`},
		"argument":          {[]string{"orders.csv"}, `unexpected argument "orders.csv"`},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := flashsale(t, c.args...)
			require.Equal(t, exitInput, status, stdout+stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, c.says)
			require.Regexp(t, `\Aflashsale: .+\n\z`, stderr, "one line")
			require.NotContains(t, stderr, "open-sesame")
		})
	}
	size := s.Do(t, "DBSIZE")
	n, err := size.ToInt64()
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestHelp(t *testing.T) {
	status, stdout, stderr := flashsale(t, "-h")
	require.Zero(t, status)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "Usage: flashsale")
	require.Contains(t, stdout, "(default 2000)")
}
