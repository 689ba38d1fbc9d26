"""Every page of the console, checked in both themes by ``test_every_page.py``. A new page gets a line here.

An address fits the tests' scenery and the demo's data alike: ``screenshots.py`` visits the same pages there.
"""

ADA = "environment=production&context.userId=42&context.plan=pro&context.appVersion=4.5.1&context.country=NO"

PAGES = [
    "/",
    "/activity/",
    "/activity/?kind=flags&sort=when",
    "/account/",
    "/account/password/",
    "/account/tokens/new/",
    "/import/",
    "/import/?project=checkout",
    "/imports/",
    "/nowhere/",
    "/playground/",
    f"/playground/?{ADA}",
    f"/playground/?{ADA}&environment=development",
    f"/playground/?{ADA}&as=json",
    "/playground/?context.currentTime=tomorrow",
    f"/playground/flag/dark-theme/?{ADA}",
    f"/playground/flag/search-v2/?{ADA}",
    "/playground/compare/",
    "/projects/",
    "/projects/new/",
    "/projects/checkout/",
    "/projects/legacy-portal/?show=archived",
    "/projects/checkout/features/archive?name=checkout-redesign",
    "/projects/checkout/applications/",
    "/applications/web-shop/",
    "/projects/legacy-portal/delete/",
    "/projects/default/delete/",
    "/access/roles/",
    "/access/roles/1/",
    "/access/roles/5/",
    "/access/roles/new/",
    "/access/roles/new/?type=root-custom",
    "/access/roles/5/delete/",
    "/access/groups/",
    "/access/groups/new/",
    "/access/tokens/",
    "/access/tokens/new/",
    "/access/people/",
    "/access/people/new/",
    "/access/service-accounts/",
    "/access/service-accounts/new/",
    "/projects/checkout/access/",
    "/admin/",
    "/admin/projects/project/",
    "/admin/projects/project/legacy-portal/change/",
    "/admin/projects/project/legacy-portal/delete/",
    "/admin/projects/flag/",
    "/api/docs/",
    "/projects/checkout/features/new",
    "/projects/checkout/features/checkout-redesign/",
    "/projects/checkout/features/gift-cards/",
    "/projects/checkout/features/checkout-redesign/edit",
    "/projects/legacy-portal/features/portal-login/",
    "/projects/checkout/features/checkout-redesign/strategies/new?environmentId=production",
    "/projects/checkout/features/gift-cards/variants?environmentId=production",
    "/projects/legacy-portal/settings/",
    "/segments/",
    "/segments/new",
    "/strategy-types/",
    "/strategy-types/new",
    "/tag-types/",
    "/context-fields/",
    "/context-fields/new",
    "/context-fields/plan/",
    "/context-fields/plan/delete",
]

# The pages that are there to refuse; every other one answers 200.
MEANT_REFUSALS = {"/nowhere/": 404, "/playground/?context.currentTime=tomorrow": 400}


def meant_status(address: str) -> int:
    return MEANT_REFUSALS.get(address, 200)
