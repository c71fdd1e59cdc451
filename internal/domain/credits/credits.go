// Package credits knows what things cost and what a plan includes: sizes,
// rates, plans, packages, and how credits are spent. Amounts are whole
// micro-credits and every sum is exact; balances and ledgers are kept
// elsewhere.
//
// An operator changes prices with a plans file. Whatever it leaves out keeps
// its default, null in a plan's cap means that there is none, and packages,
// where given, replace the ones on offer:
//
//	{
//	  "rates": {"vcpuHour": 3.6, "gbHour": 0.36, "gpuHour": 36, "storageGbMonth": 3},
//	  "plans": {
//	    "free": {"monthlyCredits": 200, "maxRunSeconds": 1800, "storageGb": 2},
//	    "pro": {"maxVcpu": 64, "maxRamGb": 512},
//	    "course": {"monthlyCredits": 2000, "maxVcpu": 8, "maxRamGb": 32, "storageGb": 50, "storageMetered": false}
//	  },
//	  "packages": [
//	    {"name": "2,000 credits", "credits": 2000, "amount": 1800, "currency": "eur"}
//	  ]
//	}
//
// Amounts of money are in the currency's minor unit: 1800 is 18.00. Hourly
// rates are multiples of 0.0036 credits, so that a second costs whole
// micro-credits.
package credits
