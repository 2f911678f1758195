package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func write(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "in.csv")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestCustomersAreRead(t *testing.T) {
	customers, err := readCustomers(write(t, "\ufeffcustomer, at,service\r\n\r\n\"ada, \"\"a\"\"\nb\",0,20\r\n bo , 7 ,0"))
	require.NoError(t, err)
	const ms = time.Millisecond
	require.Equal(t, []customer{{"ada, \"a\"\nb", 0, 20 * ms}, {"bo", 7 * ms, 0}}, customers)
}

// The sample has what a queue is made of: somebody comes before the one before is
// through, and several come at once.
func TestSampleArrivals(t *testing.T) {
	customers, err := readCustomers("arrivals.csv")
	require.NoError(t, err)
	together, service := 0, time.Duration(0)
	for i, c := range customers[1:] {
		service += c.Service
		if c.At == customers[i].At {
			together++
		}
	}
	require.Greater(t, together, 10)
	require.Greater(t, service, customers[len(customers)-1].At)
}

func TestBadInput(t *testing.T) {
	s := redistest.Start(t, "--requirepass", "open-sesame")
	good := "redis://:open-sesame@" + s.Addr()
	const head = "customer,at,service\nada,10,5\n"
	csv := func(text string) []string { return []string{"-redis", good, "-arrivals", write(t, text)} }
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no such file":     {[]string{"-redis", good, "-arrivals", "nowhere.csv"}, `-arrivals: open nowhere.csv: no such file`},
		"folder":           {[]string{"-redis", good, "-arrivals", "."}, `-arrivals: read .: is a directory`},
		"empty file":       {csv(""), `in.csv:1:1: no customers`},
		"header only":      {csv("customer,at,service\n"), `in.csv:1:1: no customers`},
		"wrong column":     {csv("customer,when,service\nada,1,5\n"), `in.csv:1:10: column 2 is "when", want "at"`},
		"no header":        {csv("ada,1,5\n"), `in.csv:1:1: column 1 is "ada", want "customer"`},
		"column missing":   {csv("customer,at\nada,1\n"), `in.csv:1:10: column service is missing`},
		"column too many":  {csv("customer,at,service,tip\nada,1,5,1\n"), `in.csv:1:21: 4 fields, want the 3 of customer,at,service`},
		"field missing":    {csv(head + "bo,20\n"), `in.csv:3:4: service is missing`},
		"field too many":   {csv(head + "bo,20,5,1\n"), `in.csv:3:9: 4 fields, want the 3`},
		"at a word":        {csv(head + "bo,soon,5\n"), `in.csv:3:4: at "soon" is not a whole number of ms from 0 to 86400000`},
		"at negative":      {csv(head + "bo,-1,5\n"), `in.csv:3:4: at "-1" is not`},
		"at out of order":  {csv(head + "bo,9,5\n"), `in.csv:3:4: at 9 is before the 10 of the customer above`},
		"service broken":   {csv(head + "bo,20,1.5\n"), `in.csv:3:7: service "1.5" is not a whole number of ms from 0 to 600000`},
		"service huge":     {csv(head + "bo,20,99999999999999999999\n"), `in.csv:3:7: service`},
		"service too long": {csv(head + "bo,20,600001\n"), `in.csv:3:7: service`},
		"customer twice":   {csv(head + "bo,20,5\nada,30,5\n"), `in.csv:4:1: customer "ada" is on line 2 already`},
		"customer empty":   {csv(head + " ,20,5\n"), `in.csv:3:1: customer is empty`},
		"customer long":    {csv(head + strings.Repeat("x", 101) + ",20,5\n"), `in.csv:3:1: customer has 101 bytes`},
		"quote open":       {csv(head + "\"bo,20,5\n"), `in.csv:3:`},
		"no Redis":         {[]string{"-redis", "127.0.0.1:1"}, `-redis: dial tcp 127.0.0.1:1: `},
		"wrong password":   {[]string{"-redis", "redis://:wrong-word@" + s.Addr()}, `-redis: WRONGPASS`},
		"no URL":           {[]string{"-redis", "redis://:open-sesame@%zz"}, `-redis: not a redis:// or rediss:// URL`},
		"no address":       {[]string{"-redis", "u:open-sesame@localhost"}, `-redis: neither host:port`},
		"address empty":    {[]string{"-redis", ""}, `-redis: is empty`},
		"arrivals empty":   {[]string{"-arrivals", ""}, `-arrivals: is empty`},
		"no processes":     {[]string{"-processes", "0"}, `-processes: 0 is not from 1 to 64`},
		"no customers":     {[]string{"-customers", "0"}, `-customers: 0 is not from 1 to 10000`},
		"customers a word": {[]string{"-customers", "many"}, `invalid value "many" for flag -customers`},
		"lease":            {[]string{"-lease", "99ms"}, `-lease: 99ms is not`},
		"guard":            {[]string{"-guard=none"}, `-guard: "none" is neither fair nor rlock`},
		"nobody to go on":  {[]string{"-processes", "2"}, `-kill: needs at least 3 -processes`},
		"contradiction":    {append(csv(head), "-customers", "3"), `-customers: contradicts -arrivals`},
		"unknown flag":     {[]string{"-gaurd=rlock"}, `-gaurd`},
		"argument":         {[]string{"arrivals.csv"}, `unexpected argument "arrivals.csv"`},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := ticketqueue(t, c.args...)
			require.Equal(t, exitInput, status, stdout+stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, c.says)
			require.Regexp(t, `\Aticketqueue: .+\n\z`, stderr, "one line")
			require.NotContains(t, stderr, "open-sesame")
		})
	}
	size := s.Do(t, "DBSIZE")
	n, err := size.ToInt64()
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestTooManyCustomers(t *testing.T) {
	var text strings.Builder
	text.WriteString("customer,at,service\n")
	for _, c := range makeCustomers(maxCustomers + 1) {
		text.WriteString(c.Name + ",0,0\n")
	}
	_, err := readCustomers(write(t, text.String()))
	require.ErrorContains(t, err, "in.csv:10002:1: more than 10000 customers")
}

func TestHelp(t *testing.T) {
	status, stdout, stderr := ticketqueue(t, "-h")
	require.Zero(t, status)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "Usage: ticketqueue")
	require.Contains(t, stdout, "(default 200)")
}
